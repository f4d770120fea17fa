//! `weir run` against `weir origin`, both as processes: what is printed, what is kept, and how it ends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// An origin on a free port. It ends when its standard input does, so it never outlives a test.
struct Origin {
    child: Child,
    url: String,
}

impl Origin {
    fn start(flags: &[&str]) -> Origin {
        let mut child = weir()
            .args(["origin", "--http", "127.0.0.1:0", "--format", "json", "--with-parent"])
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the origin starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).expect("the origin says where it listens");
        let url = format!("{}/", ready["http"][0].as_str().unwrap());
        Origin { child, url }
    }

    /// Runs to the end. `flags` are separated by blanks.
    fn run(&self, flags: &str) -> Output {
        weir().arg("run").args(flags.split_whitespace()).arg(&self.url).output().unwrap()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn weir() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(text)))
}

fn kept(path: &Path) -> Value {
    json(&std::fs::read(path).unwrap())
}

fn interrupt(child: &Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn every_request_is_in_the_record_and_nothing_else_is_on_standard_output() {
    let origin = Origin::start(&[]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.json");
    let output = origin.run(&format!("-n 301 -c 7 --instances 2 --format json -o {}", file.display()));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record = json(&output.stdout);
    assert_eq!(record["schema"], "weir.run/1");
    assert_eq!(record["totals"]["requests"], 301);
    assert_eq!(record["status"]["200"], 301);
    assert_eq!(record["interrupted"], false);
    assert_eq!(kept(&file), record);
}

#[test]
fn the_text_has_the_sections_that_people_grep_for() {
    let origin = Origin::start(&["--latency", "1ms"]);
    let output = origin.run("-n 50 -c 5 --quiet --gate errors==0");
    let text = String::from_utf8(output.stdout).unwrap();
    for section in [
        "Summary:",
        "Response time histogram:",
        "Latency distribution:",
        "Phases:",
        "Connections:",
        "Status code distribution:",
        "Gates:",
        "Verdict:",
    ] {
        assert!(text.lines().any(|line| line.starts_with(section)), "{section}\n{text}");
    }
    assert!(text.contains("  [200]\t50 responses"), "{text}");
    assert!(output.stderr.is_empty(), "--quiet says nothing");
}

#[test]
fn a_gate_that_fails_is_status_3() {
    let origin = Origin::start(&["--latency", "20ms"]);
    assert_eq!(origin.run("-n 20 --gate p(50)<1ms").status.code(), Some(3));
    assert_eq!(origin.run("-n 20 --gate p(50)>=20ms").status.code(), Some(0));
}

#[test]
fn a_run_in_which_nothing_succeeds_is_status_1_and_says_why() {
    let origin = Origin::start(&["--status", "503"]);
    let output = origin.run("-n 20 --quiet");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.starts_with("weir: no request succeeded: 20 times server/status_5xx"), "{said}");
    assert!(said.contains("\nhint: the server answers"), "{said}");
}

#[test]
fn a_port_where_nothing_listens_is_said_to_be_one() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = weir().args(["run", "-z", "60", "--quiet", &format!("http://{free}/")]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("connect/refused") && said.contains("\nhint: "), "{said}");
}

#[test]
fn the_phases_of_every_kept_sample_add_up_to_its_response_time() {
    let origin = Origin::start(&["--latency", "2ms"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("samples.csv");
    let output = origin.run(&format!("-n 200 -c 20 --pool 5 --quiet --samples {}", file.display()));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let phases = ["lag", "wait", "dns", "connect", "tls", "send", "server", "receive"];
    let mut samples = 0;
    for line in lines {
        let values: Vec<&str> = line.split(',').collect();
        let ns =
            |name: &str| -> u64 { values[names.iter().position(|n| *n == name).unwrap()].parse().unwrap() };
        let sum: u64 = phases.iter().map(|phase| ns(&format!("{phase}_ns"))).sum();
        assert_eq!(sum, ns("done_ns") - ns("intended_ns"), "{line}");
        samples += 1;
    }
    assert_eq!(samples, 200);
}

#[test]
fn an_interrupted_run_prints_and_keeps_what_there_was() {
    let origin = Origin::start(&["--latency", "1ms"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.json");
    let mut child = weir()
        .args(["run", "-z", "600", "-c", "3", "-o"])
        .args([file.as_os_str(), origin.url.as_ref()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line of progress: the run is under way, and listens for signals.
    let mut progress = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut progress).unwrap();
    assert!(progress.contains("requests"), "{progress}");
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(text.contains("Interrupted: this is a part of the run."), "{text}");
    let record = kept(&file);
    assert_eq!(record["interrupted"], true);
    assert!(record["totals"]["ok"].as_u64().unwrap() > 0);
    assert_eq!(record["totals"]["errors"], 0, "what was in flight was waited for");
}

#[test]
fn a_reader_that_goes_away_costs_no_record() {
    let origin = Origin::start(&[]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.json");
    let mut child = weir()
        .args(["run", "-n", "100", "--quiet", "-o"])
        .args([file.as_os_str(), origin.url.as_ref()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(kept(&file)["totals"]["requests"], 100);
}
