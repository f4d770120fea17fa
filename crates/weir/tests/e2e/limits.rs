//! What happens when this machine has no more files or ports: said in those words, with what to do.

use std::process::Command;

use serde_json::Value;

use crate::support::{Origin, backends, spawn, weir};

/// A shell line in which `$WEIR` is the command.
fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("NO_COLOR", "1").env("WEIR", weir().get_program());
    command.stdin(std::process::Stdio::null());
    command
}

#[test]
fn a_pool_beyond_the_limit_on_files_is_refused_at_once() {
    let origin = Origin::start("");
    let ended = spawn(&mut shell(&format!("ulimit -n 64; $WEIR run -c 100 {}", origin.url("/")))).end();
    assert_eq!(ended.status, 1);
    assert!(ended.stderr.contains("open files") && ended.stderr.contains("ulimit -n"), "{}", ended.stderr);
    assert_eq!(origin.accepted(), 0);
}

#[test]
fn requests_that_find_no_file_descriptor_say_so() {
    let origin = Origin::start("--latency 100ms");
    for io in backends() {
        let line = |format: &str| {
            format!(
                "ulimit -n 64; $WEIR run --io {io} --quiet --format {format} -q 1000 -n 300 --profile per-request {}",
                origin.url("/")
            )
        };
        let record = spawn(&mut shell(&line("json"))).end().fine();
        let failed = record["errors"]["connect/no_files"].as_u64().unwrap_or(0);
        assert!(failed > 0, "{io}: {}", record["errors"]);
        assert_eq!(record["totals"]["ok"].as_u64().unwrap(), 300 - failed, "{io}");
        assert_eq!(record["verdict"]["status"], "SUSPECT");

        let text = spawn(&mut shell(&line("text"))).end().stdout;
        assert!(text.contains("connect/no_files") && text.contains("ulimit -n"), "{io}: {text}");
    }
}

/// In a network of its own, which has 21 ports to dial from. `None` if this process may not make one.
fn in_small_network(line: &str) -> Option<Command> {
    let set_up = "ip link set lo up && echo '50000 50020' >/proc/sys/net/ipv4/ip_local_port_range";
    let alone = |line: &str| {
        let mut command = shell(line);
        let args: Vec<_> = command.get_args().map(|arg| arg.to_owned()).collect();
        let environment: Vec<_> =
            command.get_envs().map(|(k, v)| (k.to_owned(), v.unwrap_or_default().to_owned())).collect();
        command = Command::new("unshare");
        command.args(["--net", "sh"]).args(args).envs(environment).stdin(std::process::Stdio::null());
        command
    };
    match alone(set_up).output() {
        Ok(output) if output.status.success() => Some(alone(&format!("{set_up}; {line}"))),
        Ok(output) => {
            eprintln!("no network of its own: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(e) => {
            eprintln!("no network of its own: unshare: {e}");
            None
        }
    }
}

#[test]
fn requests_that_find_no_port_say_so() {
    for io in backends() {
        let dir = tempfile::tempdir().unwrap();
        let (ready, file) = (dir.path().join("ready"), dir.path().join("run.json"));
        let line = format!(
            "$WEIR origin --latency 50ms --http 127.0.0.1:8080 --format json >{ready} &
            origin=$!
            until [ -s {ready} ]; do sleep 0.01; done
            $WEIR run --io {io} --quiet -q 500 -n 200 --profile per-request -o {file} http://127.0.0.1:8080/
            kill $origin",
            ready = ready.display(),
            file = file.display(),
        );
        let Some(mut command) = in_small_network(&line) else { return };
        let ended = spawn(&mut command).end();
        let record: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let failed = record["errors"]["connect/no_ports"].as_u64().unwrap_or(0);
        assert!(failed > 0, "{io}: {}", record["errors"]);
        assert_eq!(record["totals"]["ok"].as_u64().unwrap(), 200 - failed, "{io}: {}", record["errors"]);
        for word in ["connect/no_ports", "port", "--local-addr"] {
            assert!(ended.stdout.contains(word), "{io}: {word}: {}", ended.stdout);
        }
    }
}

#[test]
fn an_address_without_a_route_is_said_to_be_one() {
    for io in backends() {
        // A network that has loopback only, and an address that is for documents only (RFC 5737).
        let line = format!("$WEIR run --io {io} --quiet -z 20s http://192.0.2.1/");
        let Some(mut command) = in_small_network(&line) else { return };
        let ended = spawn(&mut command).end();
        assert_eq!(ended.status, 1, "{io}");
        assert!(
            ended.stderr.contains("192.0.2.1:80") && ended.stderr.contains("connect/unreachable"),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains("\nhint: "), "{io}: {}", ended.stderr);
    }
}
