//! A pool that keeps every connection and limits nothing: shows how many connections a load would open.

use super::{OURS, Profile};
use crate::pool::Policy;

pub(super) fn profile(_width: u32) -> Profile {
    Profile {
        id: "unlimited",
        name: "Unlimited pool",
        about: "reuses whatever is idle, dials whenever nothing is, closes nothing",
        policy: Policy::default(),
        sources: OURS,
    }
}
