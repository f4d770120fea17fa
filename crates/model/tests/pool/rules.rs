//! One rule of the pool a test.

use weir_model::pool::{
    AcquireClock, Action, DialMode, DialRace, HintRule, IdleCapBasis, IdleCheck, IdleEvict, IdlePick, Policy,
    Pool, Retry, RetryMethods, RetryWhen, Surplus, Validate, WaiterOrder,
};

use crate::script::*;

fn lazy() -> Policy {
    Policy::default()
}

fn max_conns(n: u32) -> Policy {
    Policy { max_conns: Some(n), ..lazy() }
}

#[test]
fn an_idle_connection_is_used_before_a_new_one_is_dialled() {
    check(
        lazy(),
        &[
            (0, acquire(0), vec![dial(0)]),
            (1, dialled(0), vec![assign(0, 0)]),
            (2, acquire(1), vec![dial(1)]),
            (3, released(0), vec![]),
            (3, acquire(2), vec![assign(2, 0)]),
        ],
    );
}

#[test]
fn at_most_max_conns_are_dialling_running_and_idle_together() {
    check(
        max_conns(2),
        &[
            (0, acquire(0), vec![dial(0)]),
            (0, acquire(1), vec![dial(1)]),
            (0, acquire(2), vec![]),
            (1, dialled(0), vec![assign(0, 0)]),
            (2, dialled(1), vec![assign(1, 1)]),
            (3, released(1), vec![assign(2, 1)]),
        ],
    );
}

#[test]
fn waiters_are_served_in_the_order_of_the_policy() {
    let served = |order| {
        let mut pool = running(Policy { order, ..max_conns(1) }, 1);
        (1..5).for_each(|req| assert_eq!(play(&mut pool, 1, acquire(req)), []));
        (1..5).map(|_| play(&mut pool, 2, released(0))[0]).collect::<Vec<_>>()
    };
    assert_eq!(served(WaiterOrder::Fifo), [assign(1, 0), assign(2, 0), assign(3, 0), assign(4, 0)]);
    assert_eq!(served(WaiterOrder::Lifo), [assign(4, 0), assign(3, 0), assign(2, 0), assign(1, 0)]);
    let mut random = served(WaiterOrder::Random);
    random.sort_by_key(|action| format!("{action:?}"));
    assert_eq!(random, [assign(1, 0), assign(2, 0), assign(3, 0), assign(4, 0)]);
}

#[test]
fn random_order_serves_each_waiter_first_about_as_often() {
    let mut firsts = [0; 4];
    for seed in 0..400 {
        let mut pool = Pool::new(Policy { order: WaiterOrder::Random, ..max_conns(1) }, seed);
        play(&mut pool, 0, acquire(9));
        play(&mut pool, 0, dialled(0));
        (0..4).for_each(|req| assert_eq!(play(&mut pool, 1, acquire(req)), []));
        match play(&mut pool, 2, released(0))[..] {
            [Action::Assign(req, _)] => firsts[req.0 as usize] += 1,
            ref other => panic!("{other:?}"),
        }
    }
    assert!(firsts.iter().all(|&n| n > 60), "{firsts:?}");
}

#[test]
fn an_idle_connection_is_picked_as_the_policy_says() {
    let picked = |pick| {
        let mut pool = running(Policy { pick, ..lazy() }, 3);
        [1, 2, 0].iter().for_each(|&conn| assert_eq!(play(&mut pool, 1, released(conn)), []));
        (0..3).map(|req| play(&mut pool, 2, acquire(req))[0]).collect::<Vec<_>>()
    };
    assert_eq!(picked(IdlePick::Mru), [assign(0, 0), assign(1, 2), assign(2, 1)]);
    assert_eq!(picked(IdlePick::Lru), [assign(0, 1), assign(1, 2), assign(2, 0)]);
    assert_eq!(picked(IdlePick::FirstFit), [assign(0, 0), assign(1, 1), assign(2, 2)]);
    assert_eq!(picked(IdlePick::LastSlot), [assign(0, 2), assign(1, 1), assign(2, 0)]);
}

#[test]
fn age_is_the_order_in_which_dials_ended_not_the_number() {
    let mut pool = Pool::new(Policy { pick: IdlePick::FirstFit, ..lazy() }, 1);
    [0, 1].iter().for_each(|&req| assert_eq!(play(&mut pool, 0, acquire(req)), [dial(req)]));
    play(&mut pool, 1, dialled(1));
    play(&mut pool, 2, dialled(0));
    [0, 1].iter().for_each(|&conn| assert_eq!(play(&mut pool, 3, released(conn)), []));
    assert_eq!(play(&mut pool, 4, acquire(0)), [assign(0, 1)]);
}

#[test]
fn random_pick_uses_every_idle_connection() {
    let mut used = [false; 4];
    let mut pool = idle(Policy { pick: IdlePick::Random, ..lazy() }, 4);
    for _ in 0..100 {
        match play(&mut pool, 2, acquire(0))[..] {
            [Action::Assign(_, conn)] => {
                used[conn.0 as usize] = true;
                play(&mut pool, 2, released(conn.0));
            }
            ref other => panic!("{other:?}"),
        }
    }
    assert_eq!(used, [true; 4]);
}

#[test]
fn a_full_queue_refuses_at_once_and_serves_the_rest_in_order() {
    check(
        Policy { max_pending: Some(2), ..max_conns(1) },
        &[
            (0, acquire(0), vec![dial(0)]),
            (0, acquire(1), vec![]),
            (0, acquire(2), vec![]),
            (0, acquire(3), vec![queue_full(3)]),
            (1, dialled(0), vec![assign(0, 0)]),
            (2, released(0), vec![assign(1, 0)]),
            (2, acquire(4), vec![]),
            (2, acquire(5), vec![queue_full(5)]),
            (3, released(0), vec![assign(2, 0)]),
            (4, released(0), vec![assign(4, 0)]),
        ],
    );
}

#[test]
fn with_no_pending_allowed_a_request_runs_or_fails_at_once() {
    check(
        Policy { max_pending: Some(0), ..max_conns(1) },
        &[
            (0, acquire(0), vec![dial(0)]),
            (0, acquire(1), vec![queue_full(1)]),
            (1, dialled(0), vec![assign(0, 0)]),
            (2, released(0), vec![]),
            (3, acquire(2), vec![assign(2, 0)]),
        ],
    );
}

#[test]
fn requests_with_a_dial_count_as_pending_where_the_policy_says_so() {
    let counted = Policy { max_pending: Some(2), pending_counts_dials: true, ..max_conns(2) };
    check(
        counted,
        &[
            (0, acquire(0), vec![dial(0)]),
            (0, acquire(1), vec![dial(1)]),
            (0, acquire(2), vec![queue_full(2)]),
            (1, dialled(0), vec![assign(0, 0)]),
            (1, acquire(3), vec![]),
            (1, acquire(4), vec![queue_full(4)]),
        ],
    );
}

#[test]
fn max_inflight_limits_requests_and_not_connections() {
    check(
        Policy { max_inflight: Some(1), ..lazy() },
        &[
            (0, acquire(0), vec![dial(0)]),
            (0, acquire(1), vec![]),
            (1, dialled(0), vec![assign(0, 0)]),
            (1, acquire(2), vec![]),
            (2, closed(0), vec![dial(0)]),
            (3, dialled(0), vec![assign(1, 0)]),
            (4, released(0), vec![assign(2, 0)]),
        ],
    );
}

#[test]
fn a_cancelled_waiter_is_passed_over() {
    check(
        max_conns(1),
        &[
            (0, acquire(0), vec![dial(0)]),
            (0, acquire(1), vec![]),
            (0, acquire(2), vec![]),
            (1, cancel(1), vec![]),
            (2, dialled(0), vec![assign(0, 0)]),
            (3, released(0), vec![assign(2, 0)]),
        ],
    );
}

#[test]
fn a_waiter_is_rejected_when_its_acquire_timeout_is_over_and_not_before() {
    check(
        Policy { acquire_timeout: Some(ms_(10)), ..max_conns(1) },
        &[
            (0, acquire(0), vec![dial(0)]),
            (1, acquire(1), vec![]),
            (2, acquire(2), vec![]),
            (10, TICK, vec![]),
            (11, TICK, vec![too_late(1)]),
            // The second one's time is over too, before the connection that comes at the same moment.
            (12, dialled(0), vec![too_late(2), assign(0, 0)]),
        ],
    );
}

#[test]
fn the_wait_clock_stops_when_a_dial_starts_and_the_wait_dial_clock_does_not() {
    let script = |at_10: Vec<Action>, at_20: Vec<Action>| {
        vec![
            (0, acquire(0), vec![dial(0)]),
            (0, acquire(1), vec![]),
            (5, dial_failed(0), vec![no_dial(0, 0), dial(0)]),
            (10, TICK, at_10),
            (20, dialled(0), at_20),
        ]
    };
    let policy = |clock| Policy { acquire_timeout: Some(ms_(10)), acquire_clock: clock, ..max_conns(1) };
    check(policy(AcquireClock::Wait), &script(vec![], vec![assign(1, 0)]));
    check(policy(AcquireClock::WaitDial), &script(vec![too_late(1)], vec![]));
}

#[test]
fn a_request_that_is_cancelled_when_its_time_is_over_ends_once() {
    let mut pool = running(Policy { acquire_timeout: Some(ms_(10)), ..max_conns(1) }, 1);
    play(&mut pool, 1, acquire(1));
    assert_eq!(play(&mut pool, 11, cancel(1)), []);
}

#[test]
fn a_connection_that_both_sides_close_at_the_same_moment_is_closed_once() {
    let mut pool = idle(Policy { idle_timeout: Some(ms_(10)), ..lazy() }, 1);
    assert_eq!(play(&mut pool, 11, closed(0)), []);
    let mut pool = idle(Policy { idle_timeout: Some(ms_(10)), ..lazy() }, 1);
    assert_eq!(play(&mut pool, 11, draining(0)), [close(0)]);
}

#[test]
fn the_pool_asks_to_be_woken_for_the_first_waiter_and_then_for_the_next() {
    let mut pool = running(Policy { acquire_timeout: Some(ms_(10)), ..max_conns(1) }, 1);
    assert_eq!(wakes(&mut pool, 1, acquire(1)), [11]);
    assert!(wakes(&mut pool, 4, acquire(2)).is_empty());
    assert_eq!(wakes(&mut pool, 11, TICK), [14]);
    assert!(wakes(&mut pool, 14, TICK).is_empty());
}

#[test]
fn a_bound_request_waits_for_its_own_dial_even_if_others_give_connections_back() {
    check(
        lazy(),
        &[
            (0, acquire(0), vec![dial(0)]),
            (1, dialled(0), vec![assign(0, 0)]),
            (2, acquire(1), vec![dial(1)]),
            (3, released(0), vec![]),
            (4, acquire(2), vec![assign(2, 0)]),
            (5, dialled(1), vec![assign(1, 1)]),
        ],
    );
}

#[test]
fn a_racing_request_takes_whichever_connection_comes_first() {
    let race = |surplus| Policy { race: DialRace::Race, surplus, ..lazy() };
    let script = |end: Vec<Action>| {
        vec![
            (0, acquire(0), vec![dial(0)]),
            (1, dialled(0), vec![assign(0, 0)]),
            (2, acquire(1), vec![dial(1)]),
            (3, released(0), vec![assign(1, 0)]),
            (4, dialled(1), end),
        ]
    };
    check(race(Surplus::Keep), &script(vec![]));
    check(race(Surplus::Close), &script(vec![close(1)]));
}

#[test]
fn a_kept_surplus_connection_is_closed_if_the_idle_cap_is_reached() {
    check(
        Policy { race: DialRace::Race, max_idle: Some(0), ..lazy() },
        &[
            (0, acquire(0), vec![dial(0)]),
            (1, dialled(0), vec![assign(0, 0)]),
            (2, acquire(1), vec![dial(1)]),
            (3, released(0), vec![assign(1, 0)]),
            (4, dialled(1), vec![close(1)]),
        ],
    );
}

#[test]
fn a_dial_whose_request_is_gone_serves_the_first_waiter() {
    check(
        Policy { surplus: Surplus::Close, ..max_conns(1) },
        &[
            (0, acquire(0), vec![dial(0)]),
            (0, acquire(1), vec![]),
            (0, acquire(2), vec![]),
            (1, cancel(0), vec![]),
            (2, dialled(0), vec![assign(1, 0)]),
        ],
    );
}

#[test]
fn a_racing_dial_serves_its_own_request_before_older_waiters_do() {
    // Connections that come back go to the oldest; a dial belongs to the request that started it.
    check(
        Policy { race: DialRace::Race, ..lazy() },
        &[
            (0, acquire(0), vec![dial(0)]),
            (0, acquire(1), vec![dial(1)]),
            (1, dialled(1), vec![assign(1, 1)]),
            (2, released(1), vec![assign(0, 1)]),
        ],
    );
}

#[test]
fn a_failed_dial_rejects_its_request_and_dials_for_the_next_waiter() {
    for race in [DialRace::Bound, DialRace::Race] {
        check(
            Policy { race, ..max_conns(1) },
            &[
                (0, acquire(0), vec![dial(0)]),
                (0, acquire(1), vec![]),
                (1, dial_failed(0), vec![no_dial(0, 0), dial(0)]),
                (2, dialled(0), vec![assign(1, 0)]),
            ],
        );
    }
}

#[test]
fn a_failed_dial_whose_request_was_served_elsewhere_rejects_nobody() {
    check(
        Policy { race: DialRace::Race, ..lazy() },
        &[
            (0, acquire(0), vec![dial(0)]),
            (1, dialled(0), vec![assign(0, 0)]),
            (2, acquire(1), vec![dial(1)]),
            (3, released(0), vec![assign(1, 0)]),
            (4, dial_failed(1), vec![]),
        ],
    );
}

#[test]
fn a_dial_that_allows_no_request_has_failed_and_is_closed() {
    check(
        max_conns(1),
        &[
            (0, acquire(0), vec![dial(0)]),
            (0, acquire(1), vec![]),
            (1, dialled_with(0, 0), vec![no_dial(0, 0), close(0), dial(0)]),
        ],
    );
}

#[test]
fn the_idle_cap_closes_what_is_released_above_it() {
    let mut pool = running(Policy { max_idle: Some(2), ..lazy() }, 5);
    let done: Vec<_> = (0..5).flat_map(|conn| play(&mut pool, 1, released(conn))).collect();
    assert_eq!(done, [close(2), close(3), close(4)]);
}

#[test]
fn an_idle_cap_that_evicts_the_longest_idle_keeps_the_released() {
    let mut pool = running(Policy { max_idle: Some(2), idle_evict: IdleEvict::LongestIdle, ..lazy() }, 5);
    let done: Vec<_> = (0..5).flat_map(|conn| play(&mut pool, 1, released(conn))).collect();
    assert_eq!(done, [close(0), close(1), close(2)]);
}

#[test]
fn an_idle_cap_does_not_bite_in_a_closed_loop() {
    let mut pool = running(Policy { max_idle: Some(1), ..lazy() }, 8);
    for round in 0..10 {
        for conn in 0..8 {
            assert_eq!(play(&mut pool, round, released(conn)), []);
            assert_eq!(play(&mut pool, round, acquire(conn)), [assign(conn, conn)]);
        }
    }
}

#[test]
fn a_cap_on_all_connections_bites_in_a_closed_loop_as_soon_as_it_is_passed() {
    let policy = Policy { max_idle: Some(20), idle_cap_basis: IdleCapBasis::AllConns, ..lazy() };
    let mut at_the_cap = running(policy.clone(), 20);
    assert_eq!(play(&mut at_the_cap, 1, released(0)), []);
    let mut above_it = running(policy, 21);
    assert_eq!(play(&mut above_it, 1, released(0)), [close(0)]);
    assert_eq!(play(&mut above_it, 1, acquire(0)), [dial(0)]);
    assert_eq!(play(&mut above_it, 1, released(1)), [close(1)]);
}

#[test]
fn without_reuse_every_released_connection_is_closed_and_a_waiter_gets_a_dial() {
    check(
        Policy { reuse: false, ..max_conns(1) },
        &[
            (0, acquire(0), vec![dial(0)]),
            (0, acquire(1), vec![]),
            (1, dialled(0), vec![assign(0, 0)]),
            (2, released(0), vec![close(0), dial(0)]),
            (3, dialled(0), vec![assign(1, 0)]),
            (4, released(0), vec![close(0)]),
        ],
    );
}

#[test]
fn a_connection_is_closed_after_its_last_allowed_request() {
    check(
        Policy { max_requests_per_conn: Some(2), ..lazy() },
        &[
            (0, acquire(0), vec![dial(0)]),
            (1, dialled(0), vec![assign(0, 0)]),
            (2, released(0), vec![]),
            (3, acquire(1), vec![assign(1, 0)]),
            (4, released(0), vec![close(0)]),
        ],
    );
}

#[test]
fn a_timer_closes_an_idle_connection_at_its_own_time() {
    let mut pool = idle(Policy { idle_timeout: Some(ms_(10)), ..lazy() }, 2);
    assert_eq!(play(&mut pool, 5, acquire(0)), [assign(0, 1)]);
    assert_eq!(play(&mut pool, 6, released(1)), []);
    assert_eq!(play(&mut pool, 10, TICK), []);
    assert_eq!(play(&mut pool, 11, TICK), [close(0)]);
    assert_eq!(play(&mut pool, 15, TICK), []);
    assert_eq!(play(&mut pool, 16, TICK), [close(1)]);
}

#[test]
fn a_timer_that_is_late_still_comes_before_the_event() {
    let mut pool = idle(Policy { idle_timeout: Some(ms_(10)), ..lazy() }, 1);
    assert_eq!(play(&mut pool, 30, acquire(0)), [close(0), dial(0)]);
}

#[test]
fn a_busy_connection_needs_no_new_timer_for_each_request() {
    let mut pool = Pool::new(Policy { idle_timeout: Some(ms_(10)), ..lazy() }, 1);
    play(&mut pool, 0, acquire(0));
    assert_eq!(wakes(&mut pool, 0, dialled(0)), [10]);
    let mut asked = 0;
    for ms in 1..100 {
        asked += wakes(&mut pool, ms, released(0)).len();
        asked += wakes(&mut pool, ms, acquire(0)).len();
    }
    assert!(asked <= 10, "{asked} wakes for 99 requests");
}

#[test]
fn an_expiry_that_is_checked_on_acquire_keeps_the_connection_until_then() {
    let policy = Policy { idle_timeout: Some(ms_(10)), idle_check: IdleCheck::OnAcquire, ..lazy() };
    let mut pool = idle(policy, 2);
    assert_eq!(play(&mut pool, 50, TICK), []);
    assert_eq!(pool.counts().idle, 2);
    assert_eq!(play(&mut pool, 50, acquire(0)), [close(1), close(0), dial(0)]);
}

#[test]
fn a_sweep_closes_the_expired_at_its_multiples_and_lets_them_be_used_between() {
    let policy = Policy { idle_timeout: Some(ms_(10)), idle_check: IdleCheck::Sweep(ms_(8)), ..lazy() };
    let mut pool = idle(policy, 2);
    assert_eq!(play(&mut pool, 8, TICK), []);
    assert_eq!(play(&mut pool, 15, acquire(0)), [assign(0, 1)]);
    assert_eq!(play(&mut pool, 15, released(1)), []);
    assert_eq!(play(&mut pool, 16, TICK), [close(0)]);
    assert_eq!(play(&mut pool, 24, TICK), []);
    assert_eq!(play(&mut pool, 32, TICK), [close(1)]);
    assert!(wakes(&mut pool, 40, TICK).is_empty());
}

#[test]
fn a_lifetime_ends_at_release_or_while_idle_and_never_cuts_a_request() {
    let policy = Policy { max_lifetime: Some(ms_(10)), ..lazy() };
    let mut busy = running(policy.clone(), 1);
    assert_eq!(play(&mut busy, 10, TICK), []);
    assert_eq!(play(&mut busy, 50, TICK), []);
    assert_eq!(play(&mut busy, 60, released(0)), [close(0)]);
    let mut idle = idle(policy, 1);
    assert_eq!(play(&mut idle, 9, TICK), []);
    assert_eq!(play(&mut idle, 10, TICK), [close(0)]);
}

#[test]
fn jitter_spreads_lifetimes_below_the_maximum() {
    let policy =
        Policy { max_lifetime: Some(ms_(1_000)), lifetime_jitter_percent: 20, max_idle: None, ..lazy() };
    let mut pool = idle(policy, 50);
    assert_eq!(play(&mut pool, 799, TICK), []);
    let halfway = play(&mut pool, 900, TICK).len();
    assert!((10..=40).contains(&halfway), "{halfway} of 50 at the middle of the spread");
    assert_eq!(play(&mut pool, 1_000, TICK).len(), 50 - halfway);
}

#[test]
fn a_keep_alive_hint_is_taken_as_the_rule_says() {
    // The idle timeout is 20 ms and the connection is released at 0 ms; when is it closed?
    let closed_at = |rule, timeout_ms| {
        let mut pool = running(Policy { idle_timeout: Some(ms_(20)), keepalive_hint: rule, ..lazy() }, 1);
        play(&mut pool, 0, hint(0, Some(timeout_ms), None));
        if play(&mut pool, 0, released(0)) == [close(0)] {
            return 0;
        }
        (1..100).find(|&ms| play(&mut pool, ms, TICK) == [close(0)]).expect("it expires")
    };
    assert_eq!(closed_at(HintRule::Ignore, 5), 20);
    assert_eq!(closed_at(HintRule::Ignore, 0), 20);
    assert_eq!(closed_at(HintRule::Obey, 5), 5);
    assert_eq!(closed_at(HintRule::Obey, 30), 30);
    assert_eq!(closed_at(HintRule::Obey, 0), 0);
    assert_eq!(closed_at(HintRule::ObeyMinus(ms_(2)), 5), 3);
    assert_eq!(closed_at(HintRule::ObeyMinus(ms_(2)), 2), 0);
    assert_eq!(closed_at(HintRule::ObeyIfSmaller, 5), 5);
    assert_eq!(closed_at(HintRule::ObeyIfSmaller, 30), 20);
}

#[test]
fn a_hint_of_max_counts_the_requests_that_are_left() {
    let policy = |rule| Policy { keepalive_hint: rule, ..lazy() };
    let mut none_left = running(policy(HintRule::Obey), 1);
    play(&mut none_left, 1, hint(0, None, Some(0)));
    assert_eq!(play(&mut none_left, 1, released(0)), [close(0)]);

    let mut one_left = running(policy(HintRule::Obey), 1);
    play(&mut one_left, 1, hint(0, None, Some(1)));
    assert_eq!(play(&mut one_left, 1, released(0)), []);
    assert_eq!(play(&mut one_left, 2, acquire(1)), [assign(1, 0)]);
    assert_eq!(play(&mut one_left, 3, released(0)), [close(0)]);

    let mut ignored = running(policy(HintRule::Ignore), 1);
    play(&mut ignored, 1, hint(0, None, Some(0)));
    assert_eq!(play(&mut ignored, 1, released(0)), []);
}

#[test]
fn a_connection_that_a_hint_ended_takes_no_request_before_its_release_either() {
    let policy = Policy { keepalive_hint: HintRule::Obey, ..lazy() };
    let mut pool = Pool::new(policy, 1);
    play(&mut pool, 0, acquire(0));
    play(&mut pool, 0, dialled_with(0, 2));
    play(&mut pool, 1, hint(0, None, Some(0)));
    assert_eq!(play(&mut pool, 1, acquire(1)), [dial(1)]);
    assert_eq!(play(&mut pool, 2, released(0)), [close(0)]);
}

#[test]
fn an_idle_connection_that_the_server_closed_is_noticed_as_validate_says() {
    // Idle from 1 ms, closed by the server at 2 ms, wanted at 10 ms.
    let at_10 = |validate| {
        let mut pool = idle(Policy { validate, ..lazy() }, 1);
        assert_eq!(play(&mut pool, 2, closed(0)), []);
        let counted = pool.counts().idle;
        (counted, play(&mut pool, 10, acquire(0)))
    };
    assert_eq!(at_10(Validate::Event), (0, vec![dial(0)]));
    assert_eq!(at_10(Validate::Never), (1, vec![assign(0, 0)]));
    assert_eq!(at_10(Validate::Probe), (1, vec![close(0), dial(0)]));
    assert_eq!(at_10(Validate::ProbeAfter(ms_(9))), (1, vec![close(0), dial(0)]));
    assert_eq!(at_10(Validate::ProbeAfter(ms_(10))), (1, vec![assign(0, 0)]));
}

#[test]
fn a_probe_goes_on_to_the_next_connection() {
    let mut pool = idle(Policy { validate: Validate::Probe, ..lazy() }, 3);
    play(&mut pool, 2, closed(2));
    assert_eq!(play(&mut pool, 3, acquire(0)), [close(2), assign(0, 1)]);
}

#[test]
fn a_stale_connection_that_was_used_is_gone_once_its_request_failed() {
    let mut pool = idle(Policy { validate: Validate::Never, ..lazy() }, 1);
    play(&mut pool, 2, closed(0));
    assert_eq!(play(&mut pool, 3, acquire(0)), [assign(0, 0)]);
    assert_eq!(play(&mut pool, 4, closed(0)), []);
    assert_eq!(play(&mut pool, 5, acquire(0)), [dial(0)]);
}

#[test]
fn a_connection_closed_while_running_frees_its_place_for_a_waiter() {
    check(
        max_conns(1),
        &[
            (0, acquire(0), vec![dial(0)]),
            (1, dialled(0), vec![assign(0, 0)]),
            (1, acquire(1), vec![]),
            (2, closed(0), vec![dial(0)]),
            (3, dialled(0), vec![assign(1, 0)]),
        ],
    );
}

#[test]
fn a_draining_connection_takes_no_more_and_is_closed_after_the_last_release() {
    check(
        max_conns(1),
        &[
            (0, acquire(0), vec![dial(0)]),
            (1, dialled_with(0, 3), vec![assign(0, 0)]),
            (1, acquire(1), vec![assign(1, 0)]),
            (2, draining(0), vec![]),
            (2, acquire(2), vec![]),
            (3, released(0), vec![]),
            (4, released(0), vec![close(0), dial(0)]),
        ],
    );
}

#[test]
fn a_draining_connection_that_runs_nothing_is_closed_at_once() {
    let mut pool = idle(lazy(), 1);
    assert_eq!(play(&mut pool, 2, draining(0)), [close(0)]);
}

#[test]
fn a_connection_with_several_slots_serves_its_own_request_and_then_waiters() {
    check(
        max_conns(1),
        &[
            (0, acquire(0), vec![dial(0)]),
            (0, acquire(1), vec![]),
            (0, acquire(2), vec![]),
            (0, acquire(3), vec![]),
            (1, dialled_with(0, 3), vec![assign(0, 0), assign(1, 0), assign(2, 0)]),
            (2, released(0), vec![assign(3, 0)]),
            (3, released(0), vec![]),
            (4, acquire(4), vec![assign(4, 0)]),
        ],
    );
}

#[test]
fn one_connection_is_filled_before_the_next() {
    for pick in [IdlePick::Mru, IdlePick::Lru, IdlePick::FirstFit, IdlePick::LastSlot] {
        let mut pool = Pool::new(Policy { pick, dial: DialMode::Eager(2), ..lazy() }, 1);
        assert_eq!(play(&mut pool, 0, TICK), [dial(0), dial(1)]);
        [0, 1].iter().for_each(|&conn| assert_eq!(play(&mut pool, 1, dialled_with(conn, 2)), []));
        let first = if matches!(pick, IdlePick::Mru | IdlePick::LastSlot) { 1 } else { 0 };
        let second = 1 - first;
        let got: Vec<_> = (0..4).flat_map(|req| play(&mut pool, 2, acquire(req))).collect();
        assert_eq!(
            got,
            [assign(0, first), assign(1, first), assign(2, second), assign(3, second)],
            "{pick:?}"
        );
    }
}

#[test]
fn fewer_slots_stop_new_requests_and_more_let_waiters_in() {
    check(
        max_conns(1),
        &[
            (0, acquire(0), vec![dial(0)]),
            (1, dialled_with(0, 2), vec![assign(0, 0)]),
            (1, acquire(1), vec![assign(1, 0)]),
            (2, slots(0, 1), vec![]),
            (2, acquire(2), vec![]),
            (3, released(0), vec![]),
            (4, slots(0, 3), vec![assign(2, 0)]),
            (5, slots(0, 0), vec![]),
            (6, released(0), vec![]),
            (6, released(0), vec![]),
            (7, acquire(3), vec![]),
            (8, slots(0, 1), vec![assign(3, 0)]),
        ],
    );
}

#[test]
fn an_eager_pool_dials_at_the_start_and_keeps_its_number() {
    check(
        Policy { dial: DialMode::Eager(3), ..lazy() },
        &[
            (0, TICK, vec![dial(0), dial(1), dial(2)]),
            (1, dialled(0), vec![]),
            (1, dialled(1), vec![]),
            (1, dialled(2), vec![]),
            (20_000, closed(1), vec![dial(1)]),
        ],
    );
}

#[test]
fn an_eager_pool_keeps_no_more_than_its_limits_allow() {
    for policy in [max_conns(2), Policy { max_idle: Some(2), ..lazy() }] {
        let mut pool = Pool::new(Policy { dial: DialMode::Eager(5), ..policy }, 1);
        assert_eq!(play(&mut pool, 0, TICK), [dial(0), dial(1)]);
    }
}

#[test]
fn an_eager_pool_waits_longer_after_each_failed_round_of_dials() {
    let mut pool = Pool::new(Policy { dial: DialMode::Eager(2), ..lazy() }, 1);
    assert_eq!(play(&mut pool, 0, TICK).len(), 2);
    let mut at = 0;
    for pause_ms in [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000] {
        assert_eq!(wakes(&mut pool, at, dial_failed(0)), [at + pause_ms]);
        assert_eq!(play(&mut pool, at, dial_failed(1)), [], "the same round");
        assert_eq!(play(&mut pool, at + pause_ms - 1, TICK), []);
        at += pause_ms;
        assert_eq!(play(&mut pool, at, TICK).len(), 2);
    }
}

#[test]
fn an_eager_pool_does_not_spin_when_the_server_closes_what_it_accepts() {
    let mut pool = Pool::new(Policy { dial: DialMode::Eager(1), ..lazy() }, 1);
    play(&mut pool, 0, TICK);
    play(&mut pool, 1, dialled(0));
    assert_eq!(wakes(&mut pool, 2, closed(0)), [102]);
}

#[test]
fn an_eager_dial_serves_a_waiter_that_has_no_dial() {
    let mut pool = Pool::new(Policy { dial: DialMode::Eager(1), ..max_conns(1) }, 1);
    play(&mut pool, 0, TICK);
    assert_eq!(play(&mut pool, 0, acquire(7)), []);
    assert_eq!(play(&mut pool, 1, dialled(0)), [assign(7, 0)]);
}

#[test]
fn a_surplus_rule_does_not_close_what_an_eager_pool_dialled_for_itself() {
    let mut pool = Pool::new(Policy { dial: DialMode::Eager(1), surplus: Surplus::Close, ..lazy() }, 1);
    play(&mut pool, 0, TICK);
    assert_eq!(play(&mut pool, 1, dialled(0)), []);
}

#[test]
fn a_prewarming_pool_dials_with_the_first_request_and_only_then() {
    let mut pool = Pool::new(Policy { dial: DialMode::Prewarm(3), ..lazy() }, 1);
    assert_eq!(play(&mut pool, 0, TICK), []);
    assert_eq!(play(&mut pool, 1, acquire(0)), [dial(0), dial(1), dial(2)]);
    assert_eq!(play(&mut pool, 2, dialled(1)), []);
    assert_eq!(play(&mut pool, 2, closed(1)), []);
}

#[test]
fn counts_tell_what_the_pool_holds() {
    let mut pool = idle(max_conns(4), 1);
    play(&mut pool, 2, acquire(0));
    play(&mut pool, 2, acquire(1));
    let counts = pool.counts();
    assert_eq!((counts.running, counts.busy_conns, counts.dialling, counts.idle), (1, 1, 1, 0));
    assert_eq!((counts.open, counts.pending), (2, 0));
    (2..5).for_each(|req| drop(play(&mut pool, 2, acquire(req))));
    assert_eq!((pool.counts().open, pool.counts().pending), (4, 1));
}

#[test]
fn a_policy_under_which_nothing_can_run_is_refused() {
    let refused = |policy: Policy, place: &str| {
        let message = policy.check().expect_err(place);
        assert!(message.starts_with(place), "{message}");
    };
    refused(max_conns(0), "pool.max_conns: `0`");
    refused(Policy { max_inflight: Some(0), ..lazy() }, "pool.max_inflight: `0`");
    refused(Policy { max_requests_per_conn: Some(0), ..lazy() }, "pool.max_requests_per_conn: `0`");
    refused(Policy { idle_check: IdleCheck::Sweep(ms_(0)), ..lazy() }, "pool.idle_check:");
    refused(Policy { lifetime_jitter_percent: 101, ..lazy() }, "pool.lifetime_jitter_percent: `101`");
    assert_eq!(lazy().check(), Ok(()));
}

#[test]
fn a_retry_is_allowed_by_attempt_method_body_and_what_was_sent() {
    let rule = |methods, when| Retry { attempts: 2, methods, when };
    // (rule, attempt, method, has a body, wrote anything, got a byte) -> allowed
    let check = |retry: Retry, asked: (u8, &str, bool, bool, bool), expected: bool| {
        let (attempt, method, body, wrote, got) = asked;
        assert_eq!(retry.allows(attempt, method, body, wrote, got), expected, "{retry:?} {asked:?}");
    };
    let unwritten = rule(RetryMethods::Any, RetryWhen::Unwritten);
    check(unwritten, (0, "POST", true, false, false), true);
    check(unwritten, (1, "POST", true, false, false), true);
    check(unwritten, (2, "POST", true, false, false), false);
    check(unwritten, (0, "GET", false, true, false), false);
    let no_byte = |methods| rule(methods, RetryWhen::NoResponseByte);
    check(no_byte(RetryMethods::Any), (0, "POST", true, true, false), true);
    check(no_byte(RetryMethods::Any), (0, "GET", false, true, true), false);
    check(no_byte(RetryMethods::GetHead), (0, "HEAD", false, true, false), true);
    check(no_byte(RetryMethods::GetHead), (0, "PUT", true, true, false), false);
    check(no_byte(RetryMethods::Idempotent), (0, "PUT", true, true, false), true);
    check(no_byte(RetryMethods::Idempotent), (0, "POST", false, true, false), false);
    check(no_byte(RetryMethods::Bodyless), (0, "POST", false, true, false), true);
    check(no_byte(RetryMethods::Bodyless), (0, "PUT", true, true, false), false);
    check(no_byte(RetryMethods::Replayable), (0, "POST", true, false, false), true);
    check(no_byte(RetryMethods::Replayable), (0, "POST", true, true, false), false);
    check(no_byte(RetryMethods::Replayable), (0, "TRACE", false, true, false), true);
    check(no_byte(RetryMethods::None), (0, "GET", false, false, false), false);
    check(Retry::NONE, (0, "GET", false, false, false), false);
}
