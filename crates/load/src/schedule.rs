//! When the requests of an open loop start. Pure: numbers in, instants out.
//!
//! The offered rate r(t) has an integral Λ(t), the number of requests due by t. Request x of the run is due where
//! Λ(t) = x; so a ramp, a warm-up and the share of an instance are all the same inverse function:
//!
//! - constant: the instance i of k takes x = i, i + k, i + 2k, …
//! - Poisson: unit-rate exponential gaps, times k, in x (the time change theorem turns them into a Poisson process of
//!   rate r(t)/k, and k of these together are one of rate r(t));
//! - burst: as constant, but each request moves to the top of its second.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use weir_model::plan::{Arrival, Rate};
use weir_model::units::Nanos;

/// Bursts come at the top of each of these.
const BURST_INTERVAL_S: f64 = 1.0;

/// The due times of one instance, in order, without end.
pub(crate) struct Schedule {
    curve: Curve,
    arrival: Arrival,
    /// Place on the axis of request numbers.
    x: f64,
    instances: f64,
    rng: Xoshiro256PlusPlus,
}

/// The rate as three pieces: constant until `ramp_from_s`, linear until `ramp_to_s`, constant after.
#[derive(Clone, Copy, Debug)]
struct Curve {
    from_per_s: f64,
    to_per_s: f64,
    ramp_from_s: f64,
    ramp_to_s: f64,
}

impl Curve {
    fn new(rate: Rate, warmup: Nanos) -> Curve {
        let start = warmup.as_secs_f64();
        match rate {
            Rate::Constant { per_s } => {
                Curve { from_per_s: per_s, to_per_s: per_s, ramp_from_s: start, ramp_to_s: start }
            }
            Rate::Ramp { from_per_s, to_per_s, over } => {
                Curve { from_per_s, to_per_s, ramp_from_s: start, ramp_to_s: start + over.as_secs_f64() }
            }
        }
    }

    /// The time at which `x` requests are due, in seconds: the inverse of Λ.
    fn due_s(&self, x: f64) -> f64 {
        let before = self.from_per_s * self.ramp_from_s;
        if x < before || self.from_per_s == self.to_per_s {
            return x / self.from_per_s;
        }
        let span = self.ramp_to_s - self.ramp_from_s;
        let during = (self.from_per_s + self.to_per_s) / 2.0 * span;
        let y = x - before;
        // The first request of a ramp from nothing; below it would be 0/0.
        if y <= 0.0 {
            return self.ramp_from_s;
        }
        if y > during {
            return self.ramp_to_s + (y - during) / self.to_per_s;
        }
        // Solves from·t + slope·t²/2 = y, in the form that does not cancel when the slope is small.
        let slope = (self.to_per_s - self.from_per_s) / span;
        let root = (self.from_per_s * self.from_per_s + 2.0 * slope * y).max(0.0).sqrt();
        self.ramp_from_s + 2.0 * y / (self.from_per_s + root)
    }
}

impl Schedule {
    /// `instance` is below `instances`. Times count from the run's zero, at which the warm-up begins; a ramp begins
    /// after the warm-up.
    pub fn new(
        rate: Rate,
        arrival: Arrival,
        warmup: Nanos,
        instance: u32,
        instances: u32,
        seed: u64,
    ) -> Schedule {
        let mut schedule = Schedule {
            curve: Curve::new(rate, warmup),
            arrival,
            x: f64::from(instance),
            instances: f64::from(instances),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        };
        if arrival == Arrival::Poisson {
            schedule.x = 0.0;
            schedule.step();
        }
        schedule
    }

    fn step(&mut self) {
        self.x += match self.arrival {
            Arrival::Constant | Arrival::Burst => self.instances,
            // 1 - u is never zero.
            Arrival::Poisson => -(1.0 - self.rng.random::<f64>()).ln() * self.instances,
        };
    }

    /// Mean time between two requests of this instance where the rate is highest.
    pub fn gap(&self) -> Nanos {
        Nanos::from_secs_f64(self.instances / self.curve.from_per_s.max(self.curve.to_per_s))
    }

    pub fn next_due(&mut self) -> Nanos {
        let due_s = self.curve.due_s(self.x);
        self.step();
        match self.arrival {
            Arrival::Burst => Nanos::from_secs_f64((due_s / BURST_INTERVAL_S).floor() * BURST_INTERVAL_S),
            Arrival::Constant | Arrival::Poisson => Nanos::from_secs_f64(due_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constant(per_s: f64) -> Rate {
        Rate::Constant { per_s }
    }

    /// The due times up to `until_s` of all instances together, in order, in seconds.
    fn due(rate: Rate, arrival: Arrival, warmup_s: u64, instances: u32, until_s: f64) -> Vec<f64> {
        let mut all = Vec::new();
        for i in 0..instances {
            let seed = 7 + u64::from(i);
            let mut schedule = Schedule::new(rate, arrival, Nanos::from_secs(warmup_s), i, instances, seed);
            let mut last = 0.0;
            loop {
                let at = schedule.next_due().as_secs_f64();
                assert!(at >= last, "due times are in order");
                last = at;
                if at >= until_s {
                    break;
                }
                all.push(at);
            }
        }
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn a_constant_rate_is_evenly_spaced_whatever_the_number_of_instances() {
        for instances in [1, 2, 3, 7] {
            let all = due(constant(1_000.0), Arrival::Constant, 0, instances, 2.0);
            assert_eq!(all.len(), 2_000);
            for (j, at) in all.iter().enumerate() {
                assert!((at - j as f64 / 1_000.0).abs() < 1e-8, "{j}: {at}");
            }
        }
    }

    #[test]
    fn poisson_gaps_are_exponential_at_the_asked_rate() {
        for instances in [1, 4] {
            let all = due(constant(5_000.0), Arrival::Poisson, 0, instances, 10.0);
            // 50,000 expected, with a standard deviation of 224.
            assert!((all.len() as f64 - 50_000.0).abs() < 1_200.0, "{}", all.len());
            let gaps: Vec<f64> = all.windows(2).map(|w| w[1] - w[0]).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            let variation = variance.sqrt() / mean;
            assert!((variation - 1.0).abs() < 0.03, "an exponential's variation is 1, not {variation}");
        }
    }

    #[test]
    fn bursts_stand_at_the_top_of_each_second() {
        for instances in [1, 3] {
            let all = due(constant(1_000.0), Arrival::Burst, 0, instances, 3.0);
            for second in 0..3 {
                assert_eq!(all.iter().filter(|at| **at == second as f64).count(), 1_000);
            }
            assert_eq!(all.len(), 3_000);
        }
    }

    #[test]
    fn a_ramp_offers_the_integral_of_its_rate() {
        let ramp = |from_per_s, to_per_s| Rate::Ramp { from_per_s, to_per_s, over: Nanos::from_secs(10) };
        for (rate, warmup, until, expected) in [
            (ramp(0.0, 1_000.0), 0, 10.0, 5_000),
            (ramp(0.0, 1_000.0), 0, 5.0, 1_250),
            (ramp(0.0, 1_000.0), 3, 8.0, 1_250),
            (ramp(100.0, 1_000.0), 2, 2.0, 200),
            (ramp(100.0, 1_000.0), 2, 12.0, 200 + 5_500),
            (ramp(100.0, 1_000.0), 2, 15.0, 200 + 5_500 + 3_000),
            (ramp(1_000.0, 100.0), 0, 10.0, 5_500),
            (ramp(1_000.0, 0.0), 0, 10.0, 5_000),
        ] {
            let got = due(rate, Arrival::Constant, warmup, 2, until).len();
            assert!(got.abs_diff(expected) <= 1, "{rate:?} until {until}: {got}, not {expected}");
        }
    }

    #[test]
    fn a_ramp_from_nothing_begins_after_the_warm_up() {
        let rate = Rate::Ramp { from_per_s: 0.0, to_per_s: 10.0, over: Nanos::from_secs(1) };
        let all = due(rate, Arrival::Constant, 3, 1, 3.5);
        // 5 t² requests are due t seconds after it.
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[0] == 3.0 && (all[1] - 3.0 - 0.2f64.sqrt()).abs() < 1e-8, "{all:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_times() {
        let times = |seed| {
            let mut s = Schedule::new(constant(100.0), Arrival::Poisson, Nanos::ZERO, 0, 1, seed);
            (0..100).map(|_| s.next_due()).collect::<Vec<_>>()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
    }
}
