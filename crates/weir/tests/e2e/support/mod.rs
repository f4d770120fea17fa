//! Processes that end with the test, servers of a few lines, and what a run left behind.

mod origin;
mod run;
mod samples;
mod server;

pub use origin::{Nginx, Openssl, Origin};
pub use run::{backends, on_each_backend, run, spawn, start, wait_until};
pub use samples::{Sample, samples};
pub use server::{Request, Server, read_request};

use std::process::{Child, Command, Stdio};

pub fn weir() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// `signal` as kill(1) knows it: `INT`, `KILL`.
pub fn signal(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
    assert!(sent.expect("kill is there").success());
}

/// A port of 127.0.0.1 on which nobody listens.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Within `percent` of `expected`.
#[track_caller]
pub fn assert_near(what: &str, found: f64, expected: f64, percent: f64) {
    let off = (found - expected).abs() / expected * 100.0;
    assert!(off <= percent, "{what}: {found}, which is {off:.1} % off {expected}");
}
