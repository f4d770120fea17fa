//! HTTP/1.1 framing from outside. Every table runs each of its inputs whole, in every two pieces, and byte by byte.

mod differential;
mod drive;
mod limits;
mod requests;
mod responses;
mod splits;
mod writing;
