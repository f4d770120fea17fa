//! What the pool costs a request: nanoseconds of CPU for one acquire and one release, by profile, on 64 connections.
//! CPU and not wall time, so that a busy machine tells the same (Linux only).
//!
//!     cargo run --release -p weir-model --example pool_cost

use std::hint::black_box;

use weir_model::pool::{Action, ConnId, Event, Policy, Pool, ReqId};
use weir_model::profiles;
use weir_model::units::Nanos;

const CONNS: u32 = 64;
const ROUNDS: u32 = 5_000_000;

fn main() {
    for profile in profiles::all() {
        let policy = Policy { max_conns: Some(CONNS), max_idle: None, max_pending: None, ..profile.policy };
        if policy.reuse {
            let free = cost_ns(policy.clone(), CONNS);
            let queued = cost_ns(policy, 4 * CONNS);
            println!(
                "{:16} {free:5.1} ns with a free connection, {queued:5.1} ns through the queue",
                profile.id
            );
        }
    }
}

/// The quietest of 25 rounds. `requests` are in the pool at once; those above the number of connections wait.
fn cost_ns(policy: Policy, requests: u32) -> f64 {
    let mut pool = Pool::new(policy, 1);
    let mut actions = Vec::with_capacity(16);
    let mut on = |pool: &mut Pool, now: u64, event| {
        actions.clear();
        pool.on(Nanos(now), event, &mut actions);
        actions.iter().find_map(|action| match action {
            Action::Assign(req, conn) => Some((req.0, conn.0)),
            _ => None,
        })
    };
    (0..requests).for_each(|req| {
        on(&mut pool, 0, Event::Acquire(ReqId(req)));
    });
    // The request that runs on each connection.
    let mut running: Vec<u32> = (0..CONNS)
        .map(|conn| on(&mut pool, 0, Event::Dialled(ConnId(conn), 1)).expect("its request").0)
        .collect();
    let rounds: Vec<f64> = (0..25)
        .map(|round| {
            let start = cpu_ns();
            for i in 0..ROUNDS / 25 {
                let now = u64::from(round * (ROUNDS / 25) + i) * 1_000;
                let conn = i.wrapping_mul(2_654_435_761) % CONNS;
                let req = running[conn as usize];
                let served = on(&mut pool, now, Event::Released(ConnId(conn)));
                let next = on(&mut pool, now, Event::Acquire(ReqId(req)));
                let (req, conn) = served.or(next).expect("one of the two");
                running[conn as usize] = black_box(req);
            }
            (cpu_ns() - start) as f64 / f64::from(ROUNDS / 25)
        })
        .collect();
    rounds.into_iter().fold(f64::INFINITY, f64::min)
}

/// This thread's time on a CPU: the first number of its schedstat (Linux, Documentation/scheduler/sched-stats.rst).
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).expect("a number of nanoseconds")
}
