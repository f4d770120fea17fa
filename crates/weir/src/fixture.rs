//! Records of runs that never took place, for tests of what is printed.

use weir_model::gates::Gate;
use weir_model::plan::{Io, NetOptions, Pace, Plan, Request, Scheme, Stop, Tls, TlsVersion};
use weir_model::profiles;
use weir_model::record::{Header, Host, Record};
use weir_model::sample::{Dial, Failure, Sample};
use weir_model::tick::{Counters, Gauges, Stage, Tick, Timeline};
use weir_model::units::Nanos;

/// 400 workers for 10 s through a pool of 100.
pub fn plan() -> Plan {
    Plan {
        requests: vec![Request {
            method: "GET".to_owned(),
            scheme: Scheme::Http,
            host: "127.0.0.1".to_owned(),
            port: 8080,
            path: "/".to_owned(),
            headers: Vec::new(),
            body: None,
            weight: 1,
        }],
        pace: Pace::Closed { workers: 400 },
        stop: Stop { requests: None, duration: Some(Nanos::from_secs(10)) },
        warmup: Nanos::ZERO,
        timeout: Nanos::from_secs(20),
        profile: "fixed".to_owned(),
        pool: profiles::find("fixed", 100).expect("it is built in").policy,
        instances: 1,
        tls: Tls {
            verify: true,
            cacert: None,
            cert: None,
            key: None,
            resumption: true,
            min_version: TlsVersion::V1_2,
            max_version: TlsVersion::V1_3,
        },
        net: NetOptions { io: Io::Auto, connect_to: None, unix_socket: None, local_addrs: Vec::new() },
        seed: 1,
        gates: Vec::new(),
    }
}

/// Waits 300 ms for a connection, and the server takes 100 ms; a little more for each `nth`.
pub fn sample(nth: u64) -> Sample {
    let us = |us: u64| Nanos::from_micros(us);
    let intended = us(nth * 1_000);
    let acquired = intended + us(300_000 + nth % 100 * 20);
    let sent = acquired + us(15);
    let first_byte = sent + us(100_100 + nth % 10 * 30);
    Sample {
        intended,
        started: intended,
        acquired,
        sent,
        first_byte,
        done: first_byte + us(20),
        dial: if nth < 100 {
            Dial { dns: Nanos::ZERO, connect: us(180), tls: Nanos::ZERO }
        } else {
            Dial::default()
        },
        outcome: Ok(()),
        status: 200,
        reused: nth >= 100,
        retries: 0,
        request: 0,
        bytes_in: 128,
        bytes_out: 44,
    }
}

pub fn failed(nth: u64, failure: Failure, status: u16) -> Sample {
    Sample { outcome: Err(failure), status, ..sample(nth) }
}

pub fn record() -> Record {
    record_of(plan(), (0..1_000).map(sample), &[])
}

/// What a run of ten seconds with these samples, 100 connections and a queue of 300 would record.
pub fn record_of(plan: Plan, samples: impl IntoIterator<Item = Sample>, gates: &[Gate]) -> Record {
    let mut tick = Tick { stage: Stage::Measured, end: Nanos::from_secs(10), ..Tick::default() };
    for sample in samples {
        tick.add(&sample);
    }
    tick.gauges_peak = Gauges { in_flight: 400, queue: 300, open: 100, idle: 0 };
    tick.counters = Counters {
        started: tick.requests,
        opened: 100,
        closed: 100,
        cpu: Nanos::from_millis(50),
        ..Counters::default()
    };
    let mut timeline = Timeline::new(1);
    timeline.push(&tick);
    timeline.finish();
    let header = Header {
        started_at: "2026-01-02T03:04:05.678Z".to_owned(),
        interrupted: false,
        plan,
        host: Host {
            weir: "0.1.0".to_owned(),
            io: "uring".to_owned(),
            cpus: 2,
            kernel: "6.1.0".to_owned(),
            ..Host::default()
        },
    };
    Record::build(header, &timeline, gates)
}
