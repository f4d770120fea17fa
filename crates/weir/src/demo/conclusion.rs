//! What three runs say, in words. Each sentence is computed from their records; none is said that they do not bear out.

use weir_model::record::Record;
use weir_model::units::{format_count, format_ms, format_rate};

/// Measured and predicted rate within this are said to agree.
const AGREES: f64 = 0.05;
/// Less of a difference between two rates is not worth a sentence.
const WORTH_SAYING: f64 = 1.2;

/// A median wait below this share of the response time is nobody's wait.
const NOBODY: f64 = 0.01;

pub fn sentences(narrow: &Record, wide: &Record, fresh: &Record) -> Vec<String> {
    [bound(narrow), queue(narrow), widened(narrow, wide), churn(wide, fresh)].into_iter().flatten().collect()
}

/// Throughput of N connections that are each busy S for a request: X = N / S, in requests per second.
fn bound(narrow: &Record) -> Option<String> {
    let pool = f64::from(narrow.plan.pool.max_conns?);
    let busy_ms = narrow.latency.service.mean;
    let predicted = pool / (busy_ms / 1e3);
    let measured = narrow.totals.rate;
    let word = if (measured / predicted - 1.0).abs() <= AGREES { "and" } else { "but" };
    Some(format!(
        "{pool} connections that are each busy for {} with a request can carry {pool} / {:.4} s = {} requests/s, {word} {} \
         were measured.",
        format_ms(busy_ms),
        busy_ms / 1e3,
        format_rate(predicted),
        format_rate(measured)
    ))
}

/// Little's law over callers: each of C callers gets an answer every C / X seconds.
fn queue(narrow: &Record) -> Option<String> {
    let wait_ms = narrow.phases.wait.p50;
    let server_ms = narrow.phases.server.p50;
    (wait_ms > server_ms).then(|| {
        format!(
            "The server took {} as ever; the callers waited {} more for a connection, and nothing at the server shows it.",
            format_ms(server_ms),
            format_ms(wait_ms)
        )
    })
}

fn widened(narrow: &Record, wide: &Record) -> Option<String> {
    let times = wide.totals.rate / narrow.totals.rate;
    let nobody_waits = wide.phases.wait.p50 < NOBODY * wide.latency.response.p50;
    (times >= WORTH_SAYING && nobody_waits).then(|| {
        format!(
            "With {} connections nobody waits: {times:.1} times the rate, and {} instead of {} at the median.",
            format_count(u64::from(wide.plan.pool.max_conns.unwrap_or_default())),
            format_ms(wide.latency.response.p50),
            format_ms(narrow.latency.response.p50)
        )
    })
}

fn churn(wide: &Record, fresh: &Record) -> Option<String> {
    let each_ms = |r: &Record| r.totals.cpu_s * 1e3 / r.totals.requests.max(1) as f64;
    (fresh.totals.conns_opened > wide.totals.conns_opened).then(|| {
        format!(
            "Without reuse it took {} connections for {} requests, and {} of CPU time a request on the client's side \
             instead of {}. Over a network each of them would cost a round trip, with TLS two or three.",
            format_count(fresh.totals.conns_opened),
            format_count(fresh.totals.requests),
            format_ms(each_ms(fresh)),
            format_ms(each_ms(wide))
        )
    })
}
