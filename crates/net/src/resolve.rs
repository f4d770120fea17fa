//! Names to addresses, by the system's resolver on a thread of its own.

/// The name has no address; the text is the system's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolveError(pub String);
