//! HTTP as bytes in, events out. Owns no socket, reads no clock, knows neither pools nor plans: whoever holds the
//! connection passes the bytes it received and acts on the events.
#![forbid(unsafe_code)]

pub mod h1;
pub mod h2;
