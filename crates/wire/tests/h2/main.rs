//! HTTP/2 framing from outside. Every table runs each of its inputs whole, in every two pieces, and byte by byte.

mod bytes;
mod drive;
mod hpack;
mod limits;
mod messages;
mod scripts;
mod sending;
mod splits;
mod violations;
