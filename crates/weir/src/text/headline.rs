//! One sentence: where most of the response time went. States the share and the figures beside it; finds no fault.

use weir_model::plan::{Pace, Plan};
use weir_model::record::Record;
use weir_model::sample::Phase;
use weir_model::units::{format_count, format_ms, format_percent};

/// What a caller spends time on. Opening a connection is three phases and one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Lag,
    Wait,
    Opening,
    Send,
    Server,
    Receive,
}

const PARTS: [(Part, &[Phase]); 6] = [
    (Part::Lag, &[Phase::Lag]),
    (Part::Wait, &[Phase::Wait]),
    (Part::Opening, &[Phase::Dns, Phase::Connect, Phase::Tls]),
    (Part::Send, &[Phase::Send]),
    (Part::Server, &[Phase::Server]),
    (Part::Receive, &[Phase::Receive]),
];

/// `None` if no request succeeded.
pub fn headline(record: &Record) -> Option<String> {
    let (part, share) = largest(record)?;
    let share = format_percent(share);
    Some(match part {
        Part::Wait => {
            format!(
                "{share} of the response time was spent waiting for a connection: {}.",
                crowd(&record.plan)
            )
        }
        Part::Opening => format!(
            "{share} of the response time was spent opening connections: {} opened for {} requests.",
            format_count(record.totals.conns_opened),
            format_count(record.totals.requests)
        ),
        Part::Server => format!(
            "{share} of the response time was spent waiting for the server's answer: {} at the median.",
            format_ms(record.phases.server.p50)
        ),
        Part::Receive => format!(
            "{share} of the response time was spent receiving the answer: {} bytes each.",
            format_count(record.totals.bytes_in / record.totals.requests.max(1))
        ),
        Part::Send => format!(
            "{share} of the response time was spent sending the request: {} bytes each.",
            format_count(record.totals.bytes_out / record.totals.requests.max(1))
        ),
        Part::Lag => format!("{share} of the response time was the generator's own lateness."),
    })
}

fn largest(record: &Record) -> Option<(Part, f64)> {
    let response_ms = record.latency.response.mean;
    if record.latency.response.count == 0 || response_ms == 0.0 {
        return None;
    }
    let share =
        |phases: &[Phase]| phases.iter().map(|&p| record.phases.phase(p).mean).sum::<f64>() / response_ms;
    PARTS.iter().map(|(part, phases)| (*part, share(phases))).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// `pool 100, 400 callers`: totals over all instances.
fn crowd(plan: &Plan) -> String {
    let pool = match plan.pool.max_conns {
        Some(n) => format!("pool {}", format_count(u64::from(n) * u64::from(plan.instances))),
        None => format!("pool `{}`", plan.profile),
    };
    match &plan.pace {
        Pace::Closed { workers } => format!("{pool}, {} callers", format_count(u64::from(*workers))),
        Pace::Open { .. } => pool,
    }
}
