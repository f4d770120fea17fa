//! HTTP/2 (RFC 9113), both sides, without sockets, pools and clocks.
//!
//! ```text
//!              received bytes                          bytes to send
//!                    |                                       ^
//!   Client::next  <--+--  Event: Head, Data, Trailers,       |
//!   Server::next          Reset, GoAway, Settings, ...       |
//!                                                            |
//!   request / respond / send_data / send_trailers / reset / go_away / ping / release
//! ```
//!
//! Whoever holds the connection passes what it received to `next` until that answers `NeedMore`, and sends what was
//! appended to `out`. Any split of the received bytes gives the same events, but for where content is cut.
//!
//! ```
//! use weir_wire::h2::{Client, Config, Event, Field, PreparedHead, RequestLine, Server};
//!
//! let line = RequestLine { method: b"GET", scheme: b"http", authority: b"a", path: b"/" };
//! let get = PreparedHead::request(line, &[Field::new(b"accept", b"*/*")]).unwrap();
//! let ok = PreparedHead::response(200, &[Field::new(b"server", b"weir")]).unwrap();
//!
//! let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
//! let mut client = Client::new(Config::CLIENT, &mut to_server);
//! let mut server = Server::new(Config::SERVER, &mut to_client);
//! client.request(&get, &[], true, 7, &mut to_server).unwrap();
//!
//! let mut input = &to_server[..];
//! loop {
//!     let (used, event) = server.next(input, &mut to_client).unwrap();
//!     input = &input[used..];
//!     match event {
//!         Event::Head(head) => {
//!             assert_eq!((head.path, head.header("accept")), (&b"/"[..], Some(&b"*/*"[..])));
//!             let stream = head.stream;
//!             server.respond(stream, &ok, &[(b"content-length", b"5")], false, &mut to_client).unwrap();
//!             assert_eq!(server.send_data(stream, b"hello", true, &mut to_client), Ok(5));
//!         }
//!         Event::NeedMore => break,
//!         _ => {}
//!     }
//! }
//!
//! let (mut input, mut replies) = (&to_client[..], Vec::new());
//! loop {
//!     let (used, event) = client.next(input, &mut replies).unwrap();
//!     input = &input[used..];
//!     match event {
//!         Event::Head(head) => assert_eq!((head.tag, head.status, head.content_length), (7, 200, Some(5))),
//!         Event::Data { tag, bytes, end, .. } => assert_eq!((tag, bytes, end), (7, &b"hello"[..], true)),
//!         Event::NeedMore => break,
//!         _ => {}
//!     }
//! }
//! assert_eq!((client.active_streams(), server.active_streams()), (0, 0));
//! ```
//!
//! **What costs what.** A [`PreparedHead`] is made once; a connection writes its fields in full the first time and as
//! references from then on. Neither a request nor a response allocates once buffers have their size. A client with
//! [`Config::CLIENT`] decodes of a response what framing needs, the rest on demand.
//!
//! **Errors.** A fault that concerns one stream resets it: RST_STREAM is written, `Event::Reset` tells. One that concerns
//! all is a [`ConnectionError`]: GOAWAY is written, nothing works any more. What a peer may do to exhaust us is
//! bounded by [`Limits`].
//!
//! **The caller's part.** `out` grows with replies: stop reading from a peer that does not read. Nothing here times
//! out. Push, priorities, CONNECT with `:protocol`, and joining of cookie fields are not done.

mod client;
mod connection;
mod control;
mod data;
mod event;
mod frame;
mod headers;
pub mod hpack;
mod send;
mod server;
mod settings;
mod streams;

pub use client::{Client, ClientSide, RequestError, ResponseHead};
pub use connection::{Connection, ConnectionError, Counters, Side};
pub use event::{Cause, Event};
pub use frame::ErrorCode;
pub use hpack::{Field, Fields, Indexing, InvalidField, PreparedHead, RequestLine, Value};
pub use send::StreamGone;
pub use server::{Match, RequestHead, Server, ServerSide, preface};
pub use settings::{Config, Limits, PeerSettings, Release};

/// Odd for the requests of clients, in ascending order.
pub type StreamId = u32;

/// What a client sends first.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
