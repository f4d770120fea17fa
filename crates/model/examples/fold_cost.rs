//! What folding one request costs, in nanoseconds: `cargo run --release -p weir-model --example fold_cost`.
//!
//! The samples are those of a busy closed loop: connections reused, small lag and wait, lognormal-like server times
//! around 200 µs. Prints the fold, and the unbuffered way for comparison.

use std::hint::black_box;
use std::time::Instant;

use weir_model::sample::{Dial, Sample};
use weir_model::tick::{Fold, Reading, Tick};
use weir_model::units::Nanos;

const SAMPLES: usize = 1 << 16;
const ROUNDS: u32 = 100;

fn main() {
    let samples = samples();
    let fold = per_sample(|| {
        let mut fold = Fold::new(Nanos::ZERO);
        for sample in &samples {
            fold.add(black_box(sample));
        }
        fold.roll(&Reading { end: Nanos::from_secs(1), ..Reading::default() }).requests
    });
    let plain = per_sample(|| {
        let mut tick = Tick::default();
        for sample in &samples {
            tick.add(black_box(sample));
        }
        tick.requests
    });
    println!("fold: {fold:.1} ns per request, unbuffered: {plain:.1} ns per request");
}

/// The fastest round of many, a round being `SAMPLES` requests.
fn per_sample(mut round: impl FnMut() -> u64) -> f64 {
    let mut best_ns = f64::MAX;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        black_box(round());
        best_ns = best_ns.min(begin.elapsed().as_nanos() as f64);
    }
    best_ns / SAMPLES as f64
}

fn samples() -> Vec<Sample> {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |spread: u64| {
        // xorshift64: any generator will do for spans to fold.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % spread
    };
    (0..SAMPLES as u64).map(|i| sample(i * 15_000, &mut next)).collect()
}

fn sample(at_ns: u64, next: &mut impl FnMut(u64) -> u64) -> Sample {
    let mut now = at_ns;
    let mut after = |ns: u64| {
        now += ns;
        Nanos(now)
    };
    Sample {
        intended: Nanos(at_ns),
        started: after(next(2_000)),
        acquired: after(next(1_000)),
        sent: after(5_000 + next(10_000)),
        first_byte: after(100_000 + next(100_000) + next(100_000)),
        done: after(next(3_000)),
        dial: Dial::default(),
        outcome: Ok(()),
        status: 200,
        reused: true,
        retries: 0,
        request: 0,
        bytes_in: 160,
        bytes_out: 60,
    }
}
