//! What can be wrong with what a user asked for.

use std::fmt;

/// What the user asked for cannot be: what is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginError {
    pub message: String,
    pub hint: String,
}

impl OriginError {
    pub(crate) fn new(message: impl Into<String>, hint: impl Into<String>) -> OriginError {
        OriginError { message: message.into(), hint: hint.into() }
    }
}

impl fmt::Display for OriginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for OriginError {}
