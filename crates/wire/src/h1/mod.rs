//! HTTP/1.1 framing (RFC 9112), both sides.
//!
//! [`ResponseDecoder`] and [`RequestDecoder`] find where messages and their parts begin and end; [`write_request_head`]
//! and its neighbours write them. Any split of the received bytes gives the same events. Content codings, redirects,
//! cookies and timeouts are not decided here.
//!
//! Strictness: both sides refuse bare CR, bare LF, obs-fold, white space before the colon and control characters.
//! RFC 9112 section 2.2 lets a recipient accept a bare LF; two parsers that differ there are how requests are smuggled.

mod body;
mod chars;
mod encode;
mod fields;
mod head;
mod request;
mod response;
mod types;

pub use chars::{is_field_value, is_target, is_token};
pub use encode::{
    write_chunk, write_chunk_head, write_field, write_field_u64, write_hex, write_last_chunk,
    write_request_head, write_response_head, write_status_line, write_u64,
};
pub use fields::KeepAliveHint;
pub use request::{RequestDecoder, RequestEvent, RequestHead, TargetForm};
pub use response::{RequestKind, ResponseDecoder, ResponseEvent, ResponseHead};
pub use types::{BodyKind, Error, Headers, Limits, Part, Version, header};
