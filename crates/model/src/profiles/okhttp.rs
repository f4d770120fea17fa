//! OkHttp with its default `ConnectionPool`, for calls made with `execute` (its `Dispatcher` limits only `enqueue`).

use super::Profile;
use crate::pool::{DialRace, IdleEvict, IdlePick, Policy, Retry, RetryMethods, RetryWhen, Validate};
use crate::units::Nanos;

/// The 5 idle connections are a total over all hosts; one pool here has one host. A request other than GET probes a
/// connection that was idle for 10 s (`Validate::ProbeAfter`); a GET does not, and most requests are GETs. OkHttp takes
/// any I/O error for a reason to repeat a request whose body can be sent twice; no response byte comes nearest.
pub(super) fn profile(_width: u32) -> Profile {
    Profile {
        id: "okhttp",
        name: "OkHttp",
        about: "no limit on connections for sync calls, 5 stay idle for 5 minutes; repeats stale requests, POST too",
        policy: Policy {
            max_idle: Some(5),
            idle_evict: IdleEvict::LongestIdle,
            race: DialRace::Bound,
            connect_timeout: Some(Nanos::from_secs(10)),
            pick: IdlePick::FirstFit,
            idle_timeout: Some(Nanos::from_secs(300)),
            validate: Validate::Never,
            // As often as it meets a stale connection: a route fails only with a connection that never worked.
            retry: Retry { attempts: u8::MAX, methods: RetryMethods::Any, when: RetryWhen::NoResponseByte },
            ..Policy::default()
        },
        sources: &[
            (
                "max_conns",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/Dispatcher.kt::maxRequestsPerHost",
            ),
            (
                "max_idle",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/ConnectionPool.kt::constructor()",
            ),
            (
                "idle_evict",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/internal/connection/RealConnectionPool.kt::closeConnections",
            ),
            (
                "max_pending",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/Dispatcher.kt::readyAsyncCalls",
            ),
            (
                "acquire_timeout",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/OkHttpClient.kt::Builder",
            ),
            (
                "dial",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/internal/connection/RealRoutePlanner.kt::plan",
            ),
            (
                "race",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/internal/connection/ConnectPlan.kt::handleSuccess",
            ),
            (
                "connect_timeout",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/OkHttpClient.kt::Builder",
            ),
            (
                "pick",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/internal/connection/RealConnectionPool.kt::callAcquirePooledConnection",
            ),
            (
                "idle_timeout",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/ConnectionPool.kt::constructor()",
            ),
            (
                "keepalive_hint",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/internal/connection/RealConnectionPool.kt",
            ),
            (
                "max_lifetime",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/internal/connection/RealConnectionPool.kt",
            ),
            (
                "max_requests_per_conn",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/internal/connection/RealConnection.kt",
            ),
            (
                "validate",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/internal/connection/RealConnection.kt::isHealthy, IDLE_CONNECTION_HEALTHY_NS",
            ),
            (
                "retry",
                "square/okhttp@parent-5.4.0:okhttp/src/commonJvmAndroid/kotlin/okhttp3/internal/http/RetryAndFollowUpInterceptor.kt::recover; internal/connection/RealRoutePlanner.kt::hasNext, retryRoute",
            ),
        ],
    }
}
