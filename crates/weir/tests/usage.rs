//! What bad input gets: a message, a hint, and exit status 2 or 1, before anything is sent.

use std::process::{Command, Output};

fn weir(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .expect("the binary runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Each case: what is typed after `weir`, the exit status, and what standard error must say.
fn check(cases: &[(&str, i32, &[&str])]) {
    for (typed, status, said) in cases {
        let output = weir(&typed.split_whitespace().collect::<Vec<_>>());
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(*status), "weir {typed}\n{stderr}");
        assert!(output.stdout.is_empty(), "weir {typed}: nothing belongs on standard output");
        for part in *said {
            assert!(stderr.contains(part), "weir {typed}: `{part}` is not in\n{stderr}");
        }
    }
}

#[test]
fn a_mistake_is_answered_with_a_hint() {
    check(&[
        // 192.0.2.0/24 is for documentation: no machine has such an address.
        ("run --local-addr 192.0.2.1 http://h/", 1, &["--local-addr 192.0.2.1: ", "hint: "]),
        ("run -D /no/such/file http://127.0.0.1:1/", 1, &["/no/such/file: No such file", "hint: "]),
        (
            "run --cacert /no/such/file https://127.0.0.1:1/",
            1,
            &["--cacert /no/such/file: No such file", "hint: "],
        ),
        ("run -o a --samples a http://h/", 2, &["`-o` contradicts `--samples`"]),
        ("run", 2, &["weir: neither a URL nor `--requests` is given", "hint: say where to send"]),
        (
            "run localhost:8080",
            2,
            &["URL `localhost:8080`: it has no scheme", "hint: did you mean http://localhost:8080"],
        ),
        ("run ftp://h/", 2, &["unknown scheme `ftp`", "hint: write http:// or https://"]),
        ("run -n 0 http://h/", 2, &["weir: invalid value '0' for '--count <N>'", "hint: must be above 0"]),
        (
            "run -n -3 http://h/",
            2,
            &["weir: invalid value '-3' for '--count <N>'", "hint: write a whole number"],
        ),
        (
            "run -q -5 http://h/",
            2,
            &["weir: invalid value '-5' for '--rate <PER_S>'", "hint: write requests"],
        ),
        ("run --seed -1 http://h/", 2, &["invalid value '-1' for '--seed <N>'", "hint: expected a whole"]),
        ("run --zzz http://h/", 2, &["unexpected argument '--zzz'", "hint: `weir --help`"]),
        ("run -c ten http://h/", 2, &["weir: invalid value 'ten' for '--concurrency <N>'"]),
        ("run -z soon http://h/", 2, &["weir: invalid value 'soon' for '--duration <T>'", "500ms"]),
        (
            "run --pick lifoo http://h/",
            2,
            &["weir: invalid value 'lifoo' for '--pick <ORDER>'", "mru, lru, first_fit"],
        ),
        ("run --arrival poison -q 1 http://h/", 2, &["hint: a similar value exists: 'poisson'"]),
        ("run --max-idel 3 http://h/", 2, &["weir: unexpected argument '--max-idel' found", "'--max-idle'"]),
        ("run --profile go http://h/", 2, &["--profile: unknown value `go`", "hint: one of ", "go-nethttp"]),
        ("run -d a -D b http://h/", 2, &["`-d` contradicts `-D`", "hint: "]),
        ("run --gate p(99)<200 http://h/", 2, &["--gate", "hint: "]),
        ("run -o json http://h/", 2, &["`-o json` names a file, and looks like a format", "--format json"]),
        (
            "run --requests /no/such/file",
            1,
            &["--requests /no/such/file: No such file or directory", "hint: "],
        ),
        (
            "run -o /no/such/dir/run.json http://127.0.0.1:1/",
            1,
            &["-o /no/such/dir/run.json: No such file", "hint: "],
        ),
        (
            "run --samples /no/such/dir/s.csv http://127.0.0.1:1/",
            1,
            &["--samples /no/such/dir/s.csv: No such file"],
        ),
        ("run -c 3000000000 --pool 2000000000 http://127.0.0.1:1/", 1, &["open files", "ulimit -n"]),
        ("origin --fault explode:1", 2, &["weir: --fault: unknown kind `explode`", "hint: one of ", "reset"]),
        ("origin --latency soon", 2, &["weir: --latency: cannot read `soon`", "hint: "]),
        ("origin --http nowhere", 2, &["invalid value 'nowhere' for '--http <ADDR>'"]),
        ("origin --close --keepalive-requests 5", 2, &["`--close` contradicts `--keepalive-requests`"]),
        ("origin --announce-keepalive", 2, &["`--announce-keepalive` has nothing to announce"]),
        ("origin --cert a", 2, &["hint: give --key <FILE>"]),
        ("origin --ca-out f", 2, &["need `--https`"]),
        ("profiles nobody", 2, &["unknown profile `nobody`", "hint: one of fixed"]),
        ("completions tcsh", 2, &["weir: invalid value 'tcsh'", "bash, zsh, fish"]),
        ("rnu", 2, &["weir: unrecognized subcommand 'rnu'", "hint: one of run, origin, demo"]),
        (
            "profile",
            2,
            &["weir: unrecognized subcommand 'profile'", "hint: a similar subcommand exists: 'profiles'"],
        ),
    ]);
}

#[test]
fn an_error_is_two_lines() {
    let said = stderr(&weir(&["run", "--pick", "lifoo", "http://h/"]));
    assert_eq!(said.lines().count(), 2, "{said}");
}

#[test]
fn a_value_of_several_lines_is_shown_whole() {
    let said = stderr(&weir(&["run", "-H", "X: a\r\nY: b", "http://h/"]));
    assert!(
        said.contains("Y: b' for '--header <NAME: VALUE>'\nhint: a header value has no line ends"),
        "{said}"
    );
}

#[test]
fn help_and_version_go_to_standard_output() {
    for args in [&["--help"][..], &["run", "--help"], &["origin", "--help"], &["--version"]] {
        let output = weir(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn the_flags_of_run_are_listed() {
    let help = stdout(&weir(&["run", "--help"]));
    for flag in
        ["--max-pending", "--acquire-timeout", "--gate", "--ramp", "--local-addr", "--requests-per-conn"]
    {
        assert!(help.contains(flag), "{flag}");
    }
}

#[test]
fn profiles_are_listed_with_their_sources() {
    let list = stdout(&weir(&["profiles"]));
    for id in [
        "per-request",
        "fixed",
        "unlimited",
        "go-nethttp",
        "reactor-netty",
        "hackney-1",
        "node-http-agent",
        "okhttp",
    ] {
        assert!(list.contains(id), "{id}");
        let json = weir(&["profiles", id, "--format", "json"]);
        let profile: serde_json::Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
        assert_eq!(profile["id"], id);
        assert!(profile["sources"].as_object().is_some_and(|sources| !sources.is_empty()), "{id}");
    }
}

#[test]
fn every_shell_has_a_completion_script() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            stdout(&weir(&["completions", shell])).contains("--max-pending") || shell == "fish",
            "{shell}"
        );
    }
}
