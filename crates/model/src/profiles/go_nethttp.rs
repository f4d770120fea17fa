//! Go's `http.DefaultTransport`.

use super::Profile;
use crate::pool::{DialRace, IdlePick, Policy, Retry, RetryMethods, RetryWhen, Surplus, Validate};
use crate::units::Nanos;

/// The limit of 100 idle connections over all hosts cannot bite for one host. The timeout of 30 s is the dialler's; Go
/// allows the TLS handshake 10 s more. The idle age is also checked on reuse, which a timer on time makes void.
pub(super) fn profile(_width: u32) -> Profile {
    Profile {
        id: "go-nethttp",
        name: "Go net/http",
        about: "no limit on connections, but only 2 stay idle per host; takes whichever connection comes first",
        policy: Policy {
            max_idle: Some(2),
            race: DialRace::Race,
            surplus: Surplus::Keep,
            connect_timeout: Some(Nanos::from_secs(30)),
            pick: IdlePick::Mru,
            idle_timeout: Some(Nanos::from_secs(90)),
            validate: Validate::Event,
            // As often as it meets a stale connection.
            retry: Retry {
                attempts: u8::MAX,
                methods: RetryMethods::Replayable,
                when: RetryWhen::NoResponseByte,
            },
            ..Policy::default()
        },
        sources: &[
            ("max_conns", "golang/go@go1.26.8:src/net/http/transport.go::Transport.MaxConnsPerHost"),
            ("max_idle", "golang/go@go1.26.8:src/net/http/transport.go::DefaultMaxIdleConnsPerHost"),
            ("idle_evict", "golang/go@go1.26.8:src/net/http/transport.go::tryPutIdleConn"),
            ("max_pending", "golang/go@go1.26.8:src/net/http/transport.go::queueForDial"),
            ("order", "golang/go@go1.26.8:src/net/http/transport.go::wantConnQueue"),
            ("acquire_timeout", "golang/go@go1.26.8:src/net/http/transport.go::getConn"),
            ("dial", "golang/go@go1.26.8:src/net/http/transport.go::queueForDial"),
            ("race", "golang/go@go1.26.8:src/net/http/transport.go::tryPutIdleConn + wantConn.tryDeliver"),
            ("surplus", "golang/go@go1.26.8:src/net/http/transport.go::tryPutIdleConn + wantConn.tryDeliver"),
            ("connect_timeout", "golang/go@go1.26.8:src/net/http/transport.go::DefaultTransport"),
            ("pick", "golang/go@go1.26.8:src/net/http/transport.go::queueForIdleConn"),
            (
                "idle_timeout",
                "golang/go@go1.26.8:src/net/http/transport.go::DefaultTransport.IdleConnTimeout",
            ),
            ("idle_check", "golang/go@go1.26.8:src/net/http/transport.go::DefaultTransport.IdleConnTimeout"),
            ("keepalive_hint", "golang/go@go1.26.8:src/net/http/transport.go"),
            ("max_lifetime", "golang/go@go1.26.8:src/net/http/transport.go::Transport"),
            ("max_requests_per_conn", "golang/go@go1.26.8:src/net/http/transport.go::Transport"),
            ("validate", "golang/go@go1.26.8:src/net/http/transport.go::readLoop, queueForIdleConn"),
            (
                "retry",
                "golang/go@go1.26.8:src/net/http/transport.go::shouldRetryRequest; src/net/http/request.go::isReplayable",
            ),
        ],
    }
}
