//! The generator: pace x stop x pool x protocol, one loop per thread; samples out, folded per second.
//!
//! A client instance is one pool on one thread with one event loop. Threads share nothing while they run: each sends
//! its ticks over a channel once a second, and `Running` merges them.
#![forbid(unsafe_code)]

mod failure;
mod instance;
mod message;
mod request;
mod schedule;
mod target;
mod wire;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use weir_model::plan::{Io, Pace, Plan};
use weir_model::sample::Sample;
use weir_model::tick::{Point, Timeline};
use weir_net::{Backend, Net, NetConfig, Waker, clock};

use instance::{Instance, Job, Report, StopLevel, Work};
use message::{Filler, Message};
use schedule::Schedule;
use target::Target;

/// A run that cannot start: what is wrong, and what to do about it.
#[derive(Clone, Debug)]
pub struct LoadError {
    pub message: String,
    pub hint: String,
}

impl LoadError {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> LoadError {
        LoadError { message: message.into(), hint: hint.into() }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LoadError {}

/// What came since the last call.
#[derive(Debug)]
pub struct Update {
    /// A second that is complete over all instances, if there is one.
    pub point: Option<Point>,
    /// Requests that ended, if samples were asked for.
    pub samples: Vec<Sample>,
}

/// What is known only at the end.
#[derive(Debug)]
pub struct Finished {
    /// `io_uring` or `mio`.
    pub io: &'static str,
    /// Was stopped by a `Stopper`.
    pub interrupted: bool,
    /// Ended early because no dial ever succeeded: where to, and the last one's failure.
    pub gave_up: Option<String>,
}

/// A run under way.
pub struct Running {
    reports: Receiver<(usize, Report)>,
    threads: Vec<JoinHandle<()>>,
    running: usize,
    timeline: Timeline,
    /// Seconds that became complete together.
    points: VecDeque<Point>,
    stopper: Stopper,
    backend: Backend,
    gave_up: Option<String>,
}

/// Stops a run from another thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    level: StopLevel,
    wakers: Vec<Waker>,
}

impl Stopper {
    /// First call: no new requests, those in flight are waited for (up to the timeout). Second call: they are given
    /// up and counted as `interrupted`.
    pub fn stop(&self) {
        let raise = |level: u8| (level < 2).then_some(level + 1);
        // Fails only when the level is 2 already.
        let _ = self.level.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise);
        self.wakers.iter().for_each(Waker::wake);
    }
}

impl Running {
    /// Checks what can be checked without sending (files, certificates, the kernel), then starts the threads.
    pub fn start(plan: &Plan, keep_samples: bool) -> Result<Running, LoadError> {
        let origins = target::origins(plan);
        let tls = target::client_tls(plan)?;
        let messages = plan.requests.iter().map(|request| {
            let of_request = |o: &target::Origin| {
                (o.scheme, &o.host, o.port) == (request.scheme, &request.host, request.port)
            };
            Message::new(request, origins.iter().position(of_request).expect("made from the same list"))
        });
        let messages = Arc::new(messages.collect::<Result<Vec<_>, _>>()?);
        let level = StopLevel::new(AtomicU8::new(0));
        let (outbox, reports) = channel();
        let mut begun = Vec::new();
        let mut threads = Vec::new();
        for index in 0..plan.instances {
            let targets = origins.iter().map(|o| Target::new(o, plan, tls.clone(), index as usize)).collect();
            let job = job(plan, index, messages.clone(), targets, keep_samples);
            // Those that have begun end when their go-ahead is dropped.
            let (thread, ready, go) = spawn(plan.net.io, index as usize, job, level.clone(), outbox.clone())
                .map_err(|e| no_thread(plan.instances, &e))?;
            threads.push(thread);
            begun.push((ready, go));
        }
        let mut wakers = Vec::new();
        let mut backend = Backend::Mio;
        let mut gos = Vec::new();
        for (ready, go) in begun {
            let (waker, used) =
                ready.recv().expect("the thread answers first").map_err(|e| io_error(plan.net.io, &e))?;
            wakers.push(waker);
            backend = used;
            gos.push(go);
        }
        let zero = clock::now();
        for go in gos {
            go.send(zero).expect("the thread waits for it");
        }
        Ok(Running {
            reports,
            running: threads.len(),
            threads,
            timeline: Timeline::new(plan.instances),
            points: VecDeque::new(),
            stopper: Stopper { level, wakers },
            backend,
            gave_up: None,
        })
    }

    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// All that has been measured so far.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Blocks until something is there; `None` once the run is over and everything is in the timeline.
    pub fn next_update(&mut self) -> Option<Update> {
        if let Some(point) = self.points.pop_front() {
            return Some(Update { point: Some(point), samples: Vec::new() });
        }
        if self.running == 0 {
            return None;
        }
        let (_, report) = self.reports.recv().expect("every instance says when it ends");
        match report {
            Report::Tick(tick, samples) => Some(Update { point: self.timeline.push(&tick), samples }),
            Report::Ended { last_index, gave_up } => {
                self.running -= 1;
                self.points.extend(self.timeline.instance_ended(last_index));
                if self.running == 0 {
                    self.points.extend(self.timeline.finish());
                }
                self.gave_up = self.gave_up.take().or(gave_up);
                Some(Update { point: self.points.pop_front(), samples: Vec::new() })
            }
        }
    }

    /// After the last update.
    pub fn finish(self) -> (Timeline, Finished) {
        for thread in self.threads {
            thread.join().expect("an instance does not panic");
        }
        let finished = Finished {
            io: self.backend.name(),
            interrupted: self.stopper.level.load(Ordering::Relaxed) > 0,
            gave_up: self.gave_up,
        };
        (self.timeline, finished)
    }
}

/// The share of one instance; shares differ by at most one, and add up exactly.
fn share(total: u64, index: u32, instances: u32) -> u64 {
    let (index, instances) = (u64::from(index), u64::from(instances));
    total / instances + u64::from(index < total % instances)
}

fn job(
    plan: &Plan,
    index: u32,
    messages: Arc<Vec<Message>>,
    targets: Vec<Target>,
    keep_samples: bool,
) -> Job {
    let seed = plan.seed.wrapping_add(u64::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let work = match plan.pace {
        Pace::Closed { workers } => {
            Work::Closed { workers: share(u64::from(workers), index, plan.instances) as u32 }
        }
        Pace::Open { rate, arrival } => {
            Work::Open(Schedule::new(rate, arrival, plan.warmup, index, plan.instances, seed))
        }
    };
    Job {
        messages,
        targets,
        work,
        quota: plan.stop.requests.map(|n| share(n, index, plan.instances)),
        warmup: plan.warmup,
        duration: plan.stop.duration,
        timeout: plan.timeout,
        policy: plan.pool.clone(),
        seed,
        filler: Filler {
            counter: u64::from(index),
            step: u64::from(plan.instances),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        },
        keep_samples,
    }
}

type Ready = Receiver<std::io::Result<(Waker, Backend)>>;

/// The loop belongs to its thread, so it is made there.
fn spawn(
    io: Io,
    index: usize,
    job: Job,
    level: StopLevel,
    outbox: Sender<(usize, Report)>,
) -> std::io::Result<(JoinHandle<()>, Ready, Sender<u64>)> {
    let (ready, answer) = channel();
    let (go, begin) = channel();
    let backend = match io {
        Io::Auto => None,
        Io::Uring => Some(Backend::Uring),
        Io::Mio => Some(Backend::Mio),
    };
    let thread = std::thread::Builder::new().name(format!("instance-{index}")).spawn(move || {
        match Net::new(NetConfig { backend }) {
            Err(e) => {
                let _ = ready.send(Err(e));
            }
            Ok(net) => {
                let _ = ready.send(Ok((net.waker(), net.backend())));
                // No go-ahead: another instance could not start.
                if let Ok(zero) = begin.recv() {
                    let report = move |report| outbox.send((index, report)).is_ok();
                    Instance::new(net, job, level, Box::new(report)).run(zero);
                }
            }
        }
    })?;
    Ok((thread, answer, go))
}

fn no_thread(instances: u32, e: &std::io::Error) -> LoadError {
    LoadError::new(
        format!("cannot start the threads of {instances} instances: {e}"),
        "ask for fewer --instances, or raise the limit on processes (ulimit -u)",
    )
}

fn io_error(io: Io, e: &std::io::Error) -> LoadError {
    match io {
        Io::Uring => LoadError::new(
            format!("--io uring: the kernel refuses io_uring: {e}"),
            "use --io auto, or see kernel.io_uring_disabled and the container's seccomp profile",
        ),
        Io::Auto | Io::Mio => LoadError::new(format!("no event loop: {e}"), "raise ulimit -n"),
    }
}

/// Nothing is lost between the pace of a whole run and the shares of its instances.
#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_add_up_whatever_the_numbers() {
        for total in [0, 1, 7, 50_000, 50_001] {
            for instances in [1, 2, 3, 7, 64] {
                let shares: Vec<u64> = (0..instances).map(|i| share(total, i, instances)).collect();
                assert_eq!(shares.iter().sum::<u64>(), total);
                assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
            }
        }
    }
}
