//! Short names for events and actions, and `check`, which plays a script against a pool.

use weir_model::pool::{Action, ConnId, Event, KeepAliveHint, Policy, Pool, PoolError, ReqId};
use weir_model::units::Nanos;

/// At this millisecond this happens, and the pool must do that. `WakeAt` is left out; its tests are their own.
pub type Step = (u64, Event, Vec<Action>);

pub fn check(policy: Policy, script: &[Step]) {
    let mut pool = Pool::new(policy, 1);
    for (line, (ms, event, expected)) in script.iter().enumerate() {
        let got = play(&mut pool, *ms, *event);
        assert_eq!(&got, expected, "line {line}: at {ms} ms, {event:?}");
    }
}

/// What the pool does about an event, without `WakeAt`.
pub fn play(pool: &mut Pool, ms: u64, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    pool.on(ms_(ms), event, &mut actions);
    actions.retain(|action| !matches!(action, Action::WakeAt(_)));
    actions
}

/// When the pool wants to be woken, in milliseconds, after an event.
pub fn wakes(pool: &mut Pool, ms: u64, event: Event) -> Vec<u64> {
    let mut actions = Vec::new();
    pool.on(ms_(ms), event, &mut actions);
    let wake = |action: &Action| match action {
        Action::WakeAt(at) => Some(at.0 / 1_000_000),
        _ => None,
    };
    actions.iter().filter_map(wake).collect()
}

pub fn ms_(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

pub fn acquire(req: u32) -> Event {
    Event::Acquire(ReqId(req))
}
pub fn cancel(req: u32) -> Event {
    Event::Cancel(ReqId(req))
}
pub fn dialled(conn: u32) -> Event {
    Event::Dialled(ConnId(conn), 1)
}
pub fn dialled_with(conn: u32, slots: u32) -> Event {
    Event::Dialled(ConnId(conn), slots)
}
pub fn dial_failed(conn: u32) -> Event {
    Event::DialFailed(ConnId(conn))
}
pub fn slots(conn: u32, slots: u32) -> Event {
    Event::Slots(ConnId(conn), slots)
}
pub fn released(conn: u32) -> Event {
    Event::Released(ConnId(conn))
}
pub fn draining(conn: u32) -> Event {
    Event::Draining(ConnId(conn))
}
pub fn closed(conn: u32) -> Event {
    Event::Closed(ConnId(conn))
}
pub fn hint(conn: u32, timeout_ms: Option<u64>, max: Option<u32>) -> Event {
    Event::Hint(ConnId(conn), KeepAliveHint { timeout: timeout_ms.map(ms_), max })
}
pub const TICK: Event = Event::Tick;

pub fn dial(conn: u32) -> Action {
    Action::Dial(ConnId(conn))
}
pub fn assign(req: u32, conn: u32) -> Action {
    Action::Assign(ReqId(req), ConnId(conn))
}
pub fn close(conn: u32) -> Action {
    Action::Close(ConnId(conn))
}
pub fn queue_full(req: u32) -> Action {
    Action::Reject(ReqId(req), PoolError::PendingLimit)
}
pub fn too_late(req: u32) -> Action {
    Action::Reject(ReqId(req), PoolError::AcquireTimeout)
}
pub fn no_dial(req: u32, conn: u32) -> Action {
    Action::Reject(ReqId(req), PoolError::DialFailed(ConnId(conn)))
}

/// Opens connections `0..n`, requests `0..n` running on them.
pub fn running(policy: Policy, n: u32) -> Pool {
    let mut pool = Pool::new(policy, 1);
    for i in 0..n {
        assert_eq!(play(&mut pool, 0, acquire(i)), [dial(i)]);
    }
    for i in 0..n {
        assert_eq!(play(&mut pool, 0, dialled(i)), [assign(i, i)]);
    }
    pool
}

/// The same, then released one after the other at 1 ms.
pub fn idle(policy: Policy, n: u32) -> Pool {
    let mut pool = running(policy, n);
    for i in 0..n {
        assert_eq!(play(&mut pool, 1, released(i)), []);
    }
    pool
}
