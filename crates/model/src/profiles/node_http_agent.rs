//! Node's `new http.Agent({ keepAlive: true })`, not its `globalAgent`, which has a timeout of 5 s.

use super::Profile;
use crate::pool::{DialRace, HintRule, IdlePick, Policy, Retry, Validate};

/// Without a timeout of its own the agent ignores the server's `Keep-Alive: timeout=`: it is applied only where it is the
/// smaller of the two, and no timeout is 0 there.
pub(super) fn profile(_width: u32) -> Profile {
    Profile {
        id: "node-http-agent",
        name: "Node http.Agent({ keepAlive: true })",
        about: "no limit on connections, 256 stay idle for good; the server's Keep-Alive hint is ignored",
        policy: Policy {
            max_idle: Some(256),
            race: DialRace::Bound,
            pick: IdlePick::Mru,
            keepalive_hint: HintRule::Ignore,
            validate: Validate::Event,
            retry: Retry::NONE,
            ..Policy::default()
        },
        sources: &[
            ("max_conns", "nodejs/node@v20.20.2:lib/_http_agent.js::Agent.defaultMaxSockets"),
            ("max_idle", "nodejs/node@v20.20.2:lib/_http_agent.js::maxFreeSockets"),
            ("max_pending", "nodejs/node@v20.20.2:lib/_http_agent.js::requests"),
            ("order", "nodejs/node@v20.20.2:lib/_http_agent.js::on free requests.shift"),
            ("acquire_timeout", "nodejs/node@v20.20.2:lib/_http_agent.js"),
            ("dial", "nodejs/node@v20.20.2:lib/_http_agent.js"),
            ("race", "nodejs/node@v20.20.2:lib/_http_agent.js::addRequest"),
            ("pick", "nodejs/node@v20.20.2:lib/_http_agent.js::scheduling lifo"),
            ("idle_timeout", "nodejs/node@v20.20.2:lib/_http_agent.js::globalAgent"),
            ("keepalive_hint", "nodejs/node@v20.20.2:lib/_http_agent.js::keepSocketAlive"),
            ("max_lifetime", "nodejs/node@v20.20.2:lib/_http_agent.js"),
            ("max_requests_per_conn", "nodejs/node@v20.20.2:lib/_http_agent.js"),
            ("validate", "nodejs/node@v20.20.2:lib/_http_agent.js::addRequest"),
            ("retry", "nodejs/node@v20.20.2:lib/_http_agent.js::reuseSocket"),
        ],
    }
}
