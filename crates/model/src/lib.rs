//! What a plan, a pool, a sample and a statistic are. Pure: no I/O, no clock, no async.
//!
//! Time and randomness come in as arguments, so that the same code runs in the generator, in the simulator and in
//! property tests. Nothing here knows a socket or a protocol.
#![forbid(unsafe_code)]

pub mod gates;
pub mod plan;
pub mod pool;
pub mod profiles;
pub mod record;
pub mod sample;
pub mod stats;
pub mod tick;
pub mod units;
pub mod verdict;
