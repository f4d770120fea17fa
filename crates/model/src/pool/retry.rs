//! Whether a request that failed on a reused connection may be sent again. Decides only; the caller sends.

use super::policy::{Retry, RetryMethods, RetryWhen};

impl Retry {
    /// `attempt` counts the retries already made: 0 when the first attempt has failed. Ask only for a failure on a
    /// *reused* connection: no client that is modelled here repeats a request after a failure on a new one.
    pub fn allows(
        self,
        attempt: u8,
        method: &str,
        has_body: bool,
        wrote_anything: bool,
        got_response_byte: bool,
    ) -> bool {
        let in_time = match self.when {
            RetryWhen::Unwritten => !wrote_anything,
            RetryWhen::NoResponseByte => !got_response_byte,
        };
        attempt < self.attempts && in_time && self.methods.include(method, has_body, wrote_anything)
    }
}

impl RetryMethods {
    fn include(self, method: &str, has_body: bool, wrote_anything: bool) -> bool {
        match self {
            RetryMethods::None => false,
            RetryMethods::GetHead => matches!(method, "GET" | "HEAD"),
            RetryMethods::Idempotent => {
                matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE")
            }
            RetryMethods::Bodyless => !has_body,
            RetryMethods::Replayable => {
                !wrote_anything || matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
            }
            RetryMethods::Any => true,
        }
    }
}
