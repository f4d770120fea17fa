//! What the event loop says of a lost connection, in the words of samples and of people.

use weir_model::sample::Kind;
use weir_net::Cause;

pub(crate) fn kind_of(cause: &Cause) -> Kind {
    match cause {
        Cause::Refused => Kind::Refused,
        Cause::Unreachable => Kind::Unreachable,
        Cause::Reset => Kind::Reset,
        Cause::Closed => Kind::Closed,
        Cause::TimedOut => Kind::Timeout,
        Cause::NoPorts => Kind::NoPorts,
        Cause::NoFiles => Kind::NoFiles,
        Cause::Untrusted(_) => Kind::Untrusted,
        Cause::ClientCert(_) => Kind::ClientCert,
        Cause::Alpn | Cause::Tls(_) => Kind::Tls,
        Cause::Io(_) => Kind::Io,
    }
}

pub(crate) fn describe(cause: &Cause) -> String {
    match cause {
        Cause::Refused => "connection refused".into(),
        Cause::Unreachable => "no route to the host".into(),
        Cause::Reset => "connection reset".into(),
        Cause::Closed => "closed by the server".into(),
        Cause::TimedOut => "no answer".into(),
        Cause::NoPorts => "no ephemeral port is left".into(),
        Cause::NoFiles => "no file descriptor is left".into(),
        Cause::Alpn => "no common protocol".into(),
        Cause::Untrusted(text) | Cause::ClientCert(text) | Cause::Tls(text) => text.clone(),
        Cause::Io(e) => e.to_string(),
    }
}
