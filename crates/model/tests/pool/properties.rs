//! What holds for every policy, every load and every server. `World` asserts it at each step; here are the inputs.

use proptest::prelude::*;
use weir_model::pool::{
    AcquireClock, DialMode, DialRace, HintRule, IdleCapBasis, IdleCheck, IdleEvict, IdlePick, Policy,
    Surplus, Validate, WaiterOrder,
};
use weir_model::profiles;
use weir_model::units::Nanos;

use crate::world::{self, Arrival, Moods};

fn us(range: std::ops::Range<u64>) -> impl Strategy<Value = Nanos> {
    range.prop_map(Nanos::from_micros)
}

fn maybe<T: std::fmt::Debug>(some: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::of(some)
}

fn one_of<T: Copy + std::fmt::Debug + 'static>(values: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(values)
}

fn limits() -> impl Strategy<Value = Policy> {
    (
        maybe(1..6u32),
        maybe(0..4u32),
        one_of(&[IdleEvict::Released, IdleEvict::LongestIdle]),
        one_of(&[IdleCapBasis::Idle, IdleCapBasis::AllConns]),
        maybe(1..6u32),
        maybe(0..6u32),
        any::<bool>(),
    )
        .prop_map(
            |(max_conns, max_idle, idle_evict, idle_cap_basis, max_inflight, max_pending, counts)| Policy {
                max_conns,
                max_idle,
                idle_evict,
                idle_cap_basis,
                max_inflight,
                max_pending,
                pending_counts_dials: counts,
                ..Policy::default()
            },
        )
}

fn waiting() -> impl Strategy<Value = Policy> {
    (
        one_of(&[WaiterOrder::Fifo, WaiterOrder::Fifo, WaiterOrder::Lifo, WaiterOrder::Random]),
        maybe(us(200..6_000)),
        one_of(&[AcquireClock::Wait, AcquireClock::WaitDial]),
        one_of(&[DialMode::Lazy, DialMode::Lazy, DialMode::Eager(3), DialMode::Prewarm(4)]),
        one_of(&[DialRace::Bound, DialRace::Race]),
        one_of(&[Surplus::Keep, Surplus::Close]),
    )
        .prop_map(|(order, acquire_timeout, acquire_clock, dial, race, surplus)| Policy {
            order,
            acquire_timeout,
            acquire_clock,
            dial,
            race,
            surplus,
            ..Policy::default()
        })
}

fn expiry() -> impl Strategy<Value = Policy> {
    let checks = prop_oneof![
        2 => Just(IdleCheck::Timer),
        1 => Just(IdleCheck::OnAcquire),
        1 => us(300..3_000).prop_map(IdleCheck::Sweep)
    ];
    let hints = prop_oneof![
        2 => Just(HintRule::Ignore),
        1 => Just(HintRule::Obey),
        1 => Just(HintRule::ObeyMinus(Nanos::from_micros(500))),
        1 => Just(HintRule::ObeyIfSmaller)
    ];
    let validates = prop_oneof![
        2 => Just(Validate::Event),
        1 => Just(Validate::Never),
        1 => Just(Validate::Probe),
        1 => us(100..2_000).prop_map(Validate::ProbeAfter)
    ];
    let picks =
        one_of(&[IdlePick::Mru, IdlePick::Lru, IdlePick::FirstFit, IdlePick::LastSlot, IdlePick::Random]);
    let lifetimes = (maybe(us(500..9_000)), 0..=100u8);
    let reuse = prop::bool::weighted(0.9);
    (picks, reuse, maybe(us(0..5_000)), checks, hints, lifetimes, maybe(1..9u64), validates).prop_map(
        |(pick, reuse, idle_timeout, idle_check, keepalive_hint, lifetime, max_requests, validate)| Policy {
            pick,
            reuse,
            idle_timeout,
            idle_check,
            keepalive_hint,
            max_lifetime: lifetime.0,
            lifetime_jitter_percent: lifetime.1,
            max_requests_per_conn: max_requests,
            validate,
            ..Policy::default()
        },
    )
}

fn policies() -> impl Strategy<Value = Policy> {
    (limits(), waiting(), expiry()).prop_map(|(limits, waiting, expiry)| Policy {
        max_conns: limits.max_conns,
        max_idle: limits.max_idle,
        idle_evict: limits.idle_evict,
        idle_cap_basis: limits.idle_cap_basis,
        max_inflight: limits.max_inflight,
        max_pending: limits.max_pending,
        pending_counts_dials: limits.pending_counts_dials,
        order: waiting.order,
        acquire_timeout: waiting.acquire_timeout,
        acquire_clock: waiting.acquire_clock,
        dial: waiting.dial,
        race: waiting.race,
        surplus: waiting.surplus,
        ..expiry
    })
}

fn moods() -> impl Strategy<Value = Moods> {
    (one_of(&[0, 0, 20, 100]), one_of(&[0, 30, 80]), one_of(&[0, 0, 10]), one_of(&[0, 30]), 0..60u32, 1..4u32)
        .prop_map(|(dial_fails, closes, drains, hints, changes_slots, slots_max)| Moods {
            dial_fails,
            closes,
            drains,
            hints,
            changes_slots: if slots_max > 1 { changes_slots } else { 0 },
            slots_max,
        })
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap_us = prop_oneof![2 => Just(0), 4 => 0..400u64, 1 => 0..6_000u64];
    let arrival = (gap_us, 20..2_500u64, prop::option::weighted(0.2, 10..4_000u64));
    prop::collection::vec(
        arrival.prop_map(|(gap_us, work_us, patience_us)| Arrival { gap_us, work_us, patience_us }),
        1..80,
    )
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn limits_hold_turns_are_kept_and_nobody_is_stranded(
        policy in policies(),
        moods in moods(),
        arrivals in arrivals(),
        seed in any::<u64>(),
    ) {
        world::run(&policy, moods, &arrivals, seed);
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn the_same_seed_and_events_give_the_same_actions(
        policy in policies(),
        moods in moods(),
        arrivals in arrivals(),
        seed in any::<u64>(),
    ) {
        let first = world::run(&policy, moods, &arrivals, seed);
        prop_assert_eq!(first, world::run(&policy, moods, &arrivals, seed));
    }

    #[test]
    fn every_profile_holds_its_promises_too(
        which in 0..profiles::all().len(),
        moods in moods(),
        arrivals in arrivals(),
        seed in any::<u64>(),
    ) {
        let width = arrivals.len() as u32 / 4 + 1;
        let profile = profiles::find(profiles::all()[which].id, width).expect("a listed profile");
        world::run(&profile.policy, moods, &arrivals, seed);
    }
}
