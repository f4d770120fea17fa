//! reactor-netty's `HttpClient.create()`, and so Spring's `WebClient` unless it is told otherwise.

use super::Profile;
use crate::pool::{
    AcquireClock, DialRace, IdleCheck, IdlePick, Policy, Retry, RetryMethods, RetryWhen, Validate,
};
use crate::units::Nanos;

/// For HTTP/1.1; on HTTP/2 the queue has no limit. The event loop marks a closed channel, and the pool looks at the mark
/// when it would hand the connection out. Event-loop affinity of connections is not modelled.
pub(super) fn profile(_width: u32) -> Profile {
    Profile {
        id: "reactor-netty",
        name: "reactor-netty / Spring WebClient",
        about: "500 connections, 1,000 more requests may wait up to 45 s; least recently used first",
        policy: Policy {
            max_conns: Some(500),
            max_pending: Some(1_000),
            acquire_timeout: Some(Nanos::from_secs(45)),
            acquire_clock: AcquireClock::Wait,
            race: DialRace::Bound,
            connect_timeout: Some(Nanos::from_secs(30)),
            pick: IdlePick::Lru,
            idle_check: IdleCheck::OnAcquire,
            validate: Validate::Probe,
            retry: Retry { attempts: 1, methods: RetryMethods::Any, when: RetryWhen::Unwritten },
            ..Policy::default()
        },
        sources: &[
            (
                "max_conns",
                "reactor/reactor-netty@v1.3.6:reactor-netty-core/src/main/java/reactor/netty/tcp/TcpResources.java::getOrCreate",
            ),
            (
                "max_idle",
                "reactor/reactor-pool@v1.2.6:reactor-pool/src/main/java/reactor/pool/SimpleDequePool.java::maybeRecycleAndDrain",
            ),
            (
                "max_pending",
                "reactor/reactor-netty@v1.3.6:reactor-netty-core/src/main/java/reactor/netty/resources/PooledConnectionProvider.java::PoolFactory",
            ),
            (
                "order",
                "reactor/reactor-pool@v1.2.6:reactor-pool/src/main/java/reactor/pool/SimpleDequePool.java::pendingPoll",
            ),
            (
                "acquire_timeout",
                "reactor/reactor-netty@v1.3.6:reactor-netty-core/src/main/java/reactor/netty/resources/ConnectionProvider.java::DEFAULT_POOL_ACQUIRE_TIMEOUT",
            ),
            (
                "acquire_clock",
                "reactor/reactor-netty@v1.3.6:reactor-netty-core/src/main/java/reactor/netty/resources/ConnectionProvider.java::DEFAULT_POOL_ACQUIRE_TIMEOUT",
            ),
            (
                "dial",
                "reactor/reactor-pool@v1.2.6:reactor-pool/src/main/java/reactor/pool/SimpleDequePool.java::drainLoop",
            ),
            (
                "race",
                "reactor/reactor-pool@v1.2.6:reactor-pool/src/main/java/reactor/pool/SimpleDequePool.java::drainLoop",
            ),
            (
                "connect_timeout",
                "reactor/reactor-netty@v1.3.6:docs/modules/ROOT/pages/http-client.adoc::Connection Timeout",
            ),
            (
                "pick",
                "reactor/reactor-netty@v1.3.6:reactor-netty-core/src/main/java/reactor/netty/resources/ConnectionProvider.java::DEFAULT_POOL_LEASING_STRATEGY",
            ),
            (
                "idle_timeout",
                "reactor/reactor-netty@v1.3.6:reactor-netty-core/src/main/java/reactor/netty/resources/ConnectionProvider.java::DEFAULT_POOL_MAX_IDLE_TIME",
            ),
            (
                "idle_check",
                "reactor/reactor-netty@v1.3.6:reactor-netty-core/src/main/java/reactor/netty/resources/ConnectionProvider.java::DEFAULT_POOL_MAX_IDLE_TIME",
            ),
            (
                "keepalive_hint",
                "reactor/reactor-netty@v1.3.6:reactor-netty-core/src/main/java/reactor/netty/resources/ConnectionProvider.java",
            ),
            (
                "max_lifetime",
                "reactor/reactor-netty@v1.3.6:reactor-netty-core/src/main/java/reactor/netty/resources/ConnectionProvider.java::DEFAULT_POOL_MAX_LIFE_TIME",
            ),
            (
                "max_requests_per_conn",
                "reactor/reactor-netty@v1.3.6:reactor-netty-core/src/main/java/reactor/netty/resources/ConnectionProvider.java",
            ),
            (
                "validate",
                "reactor/reactor-netty@v1.3.6:reactor-netty-core/src/main/java/reactor/netty/resources/DefaultPooledConnectionProvider.java::DEFAULT_EVICTION_PREDICATE, DisposableAcquire.run",
            ),
            (
                "retry",
                "reactor/reactor-netty@v1.3.6:reactor-netty-http/src/main/java/reactor/netty/http/client/HttpClientConnect.java::onUncaughtException, HttpClientHandler.test",
            ),
        ],
    }
}
