//! `weir run` as a process that must end by itself.

use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{free_port, signal, weir};

/// A run that takes longer than this hangs. Far beyond what any takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run that has ended.
pub struct Ended {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// The record on standard output.
    pub fn record(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}\nstdout: {}\nstderr: {}", self.stdout, self.stderr))
    }

    /// The record of a run that went well. On a busy machine the generator is late, and says so with status 4.
    #[track_caller]
    pub fn fine(&self) -> Value {
        let late = || {
            let record = self.record();
            let reasons = record["verdict"]["reasons"].as_array().unwrap();
            let invalid: Vec<&str> = reasons
                .iter()
                .filter(|reason| reason["status"] == "INVALID")
                .map(|reason| reason["id"].as_str().unwrap())
                .collect();
            invalid.iter().all(|id| ["generator-lag", "rate-not-reached"].contains(id))
        };
        assert!(self.status == 0 || self.status == 4 && late(), "{}\n{}", self.stdout, self.stderr);
        self.record()
    }
}

/// A run under way.
pub struct Started {
    child: Child,
}

impl Started {
    pub fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Waits for the end, which must come by itself.
    #[track_caller]
    pub fn end(self) -> Ended {
        let pid = self.child.id().to_string();
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(self.child.wait_with_output()));
        match ended.recv_timeout(PATIENCE) {
            Ok(output) => ended_with(&output.unwrap()),
            Err(_) => {
                let _ = Command::new("kill").args(["-KILL", &pid]).status();
                panic!("the run does not end");
            }
        }
    }
}

fn ended_with(output: &Output) -> Ended {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        // A signal that nobody caught has no status.
        status: output.status.code().unwrap_or(-1),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

/// Starts `weir run FLAGS URL`; `flags` are separated by blanks, `url` may be empty.
pub fn start(flags: &str, url: &str) -> Started {
    let mut command = weir();
    command.arg("run").args(flags.split_whitespace());
    if !url.is_empty() {
        command.arg(url);
    }
    spawn(&mut command)
}

pub fn spawn(command: &mut Command) -> Started {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("weir starts");
    Started { child }
}

/// Runs to the end, with JSON on standard output.
#[track_caller]
pub fn run(flags: &str, url: &str) -> Ended {
    start(&format!("--format json --quiet {flags}"), url).end()
}

/// The bodies of the event loop that this kernel has.
pub fn backends() -> &'static [&'static str] {
    static FOUND: OnceLock<&[&str]> = OnceLock::new();
    FOUND.get_or_init(|| {
        let tried = run("--io uring -n 1", &format!("http://127.0.0.1:{}/", free_port()));
        if tried.stderr.contains("refuses io_uring") {
            eprintln!("io_uring is not tested: {}", tried.stderr);
            return &["mio"];
        }
        &["uring", "mio"]
    })
}

/// Runs the test on all of them side by side: most of its time goes by in waiting.
pub fn on_each_backend(test: impl Fn(&str) + Sync) {
    std::thread::scope(|scope| {
        for io in backends() {
            scope.spawn(|| test(io));
        }
    });
}

/// Asks again until `condition` holds, which it must within the patience for a whole run.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
