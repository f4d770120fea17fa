//! What an error's name means in words, and what to do where something can be done on this side.

use weir_model::plan::Plan;
use weir_model::sample::{Kind, Phase};
use weir_model::units::format_count;

use super::span;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    pub what: String,
    pub advice: Option<String>,
}

/// `name` is `phase/kind`. A name of a later version of the schema explains nothing.
pub fn explain(name: &str, plan: &Plan) -> Explained {
    let known = name.split_once('/').and_then(|(phase, kind)| {
        let phase = Phase::ALL.into_iter().find(|p| p.name() == phase)?;
        let kind = Kind::ALL.into_iter().find(|k| k.name() == kind)?;
        Some((phase, kind))
    });
    let Some((phase, kind)) = known else {
        return Explained { what: "unknown to this version of weir".to_owned(), advice: None };
    };
    Explained { what: what(phase, kind, plan), advice: advice(kind, plan).map(str::to_owned) }
}

fn what(phase: Phase, kind: Kind, plan: &Plan) -> String {
    let pool = &plan.pool;
    match kind {
        Kind::PendingLimit => match pool.max_pending {
            Some(n) => format!("the pool's queue was full ({} waiting)", format_count(u64::from(n))),
            None => "the pool's queue was full".to_owned(),
        },
        Kind::AcquireTimeout => match pool.acquire_timeout {
            Some(t) => format!("no connection from the pool within {}", span(t)),
            None => "no connection from the pool in time".to_owned(),
        },
        Kind::Timeout => timeout(phase, plan),
        Kind::Interrupted => "still under way when the run was interrupted".to_owned(),
        Kind::NotFound => "the host name has no address".to_owned(),
        Kind::Refused => "connection refused: nothing listens there".to_owned(),
        Kind::Unreachable => "no route to the host".to_owned(),
        Kind::Reset => format!("the server reset the connection {}", during(phase)),
        Kind::Closed => format!("the server closed the connection {}", during(phase)),
        Kind::Truncated => "the server closed the connection inside the body".to_owned(),
        Kind::Malformed => "the answer is not valid HTTP".to_owned(),
        Kind::TooLarge => "the head of the answer is longer than the limit".to_owned(),
        Kind::NoPorts => {
            "no ephemeral port left: too many connections to one address, open or in TIME_WAIT".to_owned()
        }
        Kind::NoFiles => "no file descriptor left: too many open connections for this process".to_owned(),
        Kind::Untrusted => "the server's certificate is not trusted".to_owned(),
        Kind::ClientCert => "the server wants a client certificate, or refused ours".to_owned(),
        Kind::Tls => "the TLS handshake or a TLS record failed".to_owned(),
        Kind::Status4xx => "answered with a status from 400 to 499".to_owned(),
        Kind::Status5xx => "answered with a status from 500 to 599".to_owned(),
        Kind::Io => format!("an error of the operating system {}", during(phase)),
    }
}

fn timeout(phase: Phase, plan: &Plan) -> String {
    let limit = span(plan.timeout);
    match phase {
        Phase::Lag => format!("not even started within {limit}"),
        Phase::Wait => format!("still waiting for a connection after {limit}"),
        Phase::Dns | Phase::Connect | Phase::Tls => {
            let shorter = plan.pool.connect_timeout.filter(|&t| t < plan.timeout).map_or(limit, span);
            format!("no connection within {shorter}, stopped at {}", phase.name())
        }
        Phase::Send => format!("the request could not be sent within {limit}"),
        Phase::Server => format!("no answer within {limit}"),
        Phase::Receive => format!("the answer was not complete within {limit}"),
    }
}

fn during(phase: Phase) -> &'static str {
    match phase {
        Phase::Lag | Phase::Wait => "before the request",
        Phase::Dns => "during name resolution",
        Phase::Connect => "during connect",
        Phase::Tls => "during the TLS handshake",
        Phase::Send => "while the request was sent",
        Phase::Server => "before the answer",
        Phase::Receive => "inside the answer",
    }
}

fn advice(kind: Kind, plan: &Plan) -> Option<&'static str> {
    match kind {
        Kind::NoPorts => Some(
            "Use more source addresses (--local-addr 127.0.0.2-127.0.0.9), widen the range (sysctl net.ipv4.ip_local_port_range), or reuse connections.",
        ),
        Kind::NoFiles => Some("Raise the limit (ulimit -n), or bound the pool (--pool)."),
        Kind::Untrusted if plan.tls.cacert.is_none() => {
            Some("Trust its authority (--cacert FILE), or accept any certificate (-k).")
        }
        Kind::Untrusted => {
            Some("Is the authority in --cacert the one that signed it, and for this host name?")
        }
        Kind::ClientCert if plan.tls.cert.is_none() => Some("Give one with --cert FILE and --key FILE."),
        Kind::Tls => Some("Does the server speak TLS at this port, and a version that --tls allows?"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_kind_in_every_phase_has_words() {
        let plan = fixture::plan();
        for phase in Phase::ALL {
            for kind in Kind::ALL {
                let explained = explain(&format!("{}/{}", phase.name(), kind.name()), &plan);
                assert!(explained.what.len() > 10, "{}/{}", phase.name(), kind.name());
                assert_ne!(explained.what, "unknown to this version of weir");
            }
        }
    }

    #[test]
    fn unknown_names_are_said_to_be_unknown() {
        assert_eq!(explain("wait/nonsense", &fixture::plan()).what, "unknown to this version of weir");
    }

    #[test]
    fn running_out_of_ports_or_files_comes_with_what_to_do() {
        let plan = fixture::plan();
        let advice = |name| explain(name, &plan).advice.unwrap_or_default();
        assert!(advice("connect/no_ports").contains("ip_local_port_range"));
        assert!(advice("connect/no_ports").contains("--local-addr"));
        assert!(advice("connect/no_files").contains("ulimit -n"));
    }

    #[test]
    fn a_failed_handshake_comes_with_what_to_check() {
        assert!(explain("tls/tls", &fixture::plan()).advice.is_some_and(|advice| advice.contains("--tls")));
    }
}
