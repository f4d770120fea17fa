//! HPACK (RFC 7541): header fields as references into a table that both sides keep alike.
//!
//! [`Decoder`] and [`Encoder`] are one direction each and belong to one connection. What a field means is decided as
//! far as framing needs it (RFC 9113 section 8); everything else passes as bytes.

mod decode;
mod encode;
mod huffman;
mod kind;
mod static_table;
mod table;

pub use decode::{BlockError, Decoder, Fields, InvalidHuffman, Value};
pub use encode::{Encoder, Field, Indexing, InvalidField, PreparedHead, RequestLine};
pub use huffman::{decode as huffman_decode, encode as huffman_encode, encoded_len as huffman_len};
pub(crate) use kind::Kind;
