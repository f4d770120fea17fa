//! What a service without a pool does.

use super::{OURS, Profile};
use crate::pool::Policy;

pub(super) fn profile(_width: u32) -> Profile {
    Profile {
        id: "per-request",
        name: "Connection per request",
        about: "a new connection for every request, closed after it",
        policy: Policy { reuse: false, ..Policy::default() },
        sources: OURS,
    }
}
