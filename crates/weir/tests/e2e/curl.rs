//! `weir origin` as other clients see it: curl, and bytes written by hand.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::Origin;

/// What curl printed.
#[track_caller]
fn curl(args: &[&str]) -> Vec<u8> {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "20", "--noproxy", "*"])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("curl is not installed: `make setup` installs it (Debian: apt-get install curl)");
    assert!(output.status.success(), "curl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn curl_gets_what_it_asks_for() {
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.pem");
    let origin = Origin::start(&format!("--https 127.0.0.1:0 --ca-out {}", ca.display()));
    let ca = ca.to_str().unwrap();

    assert_eq!(curl(&[&origin.url("/")]).len(), 12);
    assert_eq!(curl(&[&origin.url("/bytes/100000?chunked=1")]).len(), 100_000);
    assert_eq!(curl(&["--cacert", ca, &origin.https_url("/bytes/100000")]).len(), 100_000);
    assert_eq!(curl(&["--http1.0", &origin.url("/bytes/1000")]).len(), 1_000);

    let head = text(curl(&["--head", &origin.url("/bytes/1234")])).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200") && head.contains("content-length: 1234"), "{head}");
    let status = |path: &str| text(curl(&["-w", "%{http_code}", "-o", "/dev/null", &origin.url(path)]));
    assert_eq!(status("/status/503"), "503");
    assert_eq!(status("/status/204"), "204");
    assert_eq!(status("/?delay=soon"), "400");
}

#[test]
fn curl_sends_a_long_body_after_100_continue() {
    let origin = Origin::start("");
    let dir = tempfile::tempdir().unwrap();
    let (file, path) = (dir.path().join("body"), origin.url("/echo"));
    let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i % 253) as u8).collect();
    fs::write(&file, &bytes).unwrap();
    let data = format!("@{}", file.display());
    for more in
        [&["-H", "Expect: 100-continue"][..], &["-H", "Transfer-Encoding: chunked"], &["-H", "Expect:"]]
    {
        let args = [&["--data-binary", &data, "--expect100-timeout", "15"], more, &[&path]].concat();
        assert!(curl(&args) == bytes, "{more:?}: the echo differs");
    }
    let said = text(
        curl(&["-i", "--data-binary", &data, "-H", "Expect: 100-continue", "-o", "-", "-w", "", &path])
            .into_iter()
            .take(12)
            .collect(),
    );
    assert_eq!(said, "HTTP/1.1 100");
}

#[test]
fn curl_uses_its_connection_again() {
    let origin = Origin::start("");
    let url = origin.url("/bytes/10");
    let out = text(curl(&[
        "-w",
        "%{num_connects},",
        "-o",
        "/dev/null",
        "-o",
        "/dev/null",
        "-o",
        "/dev/null",
        &url,
        &url,
        &url,
    ]));
    assert_eq!(out, "1,0,0,");
    assert_eq!(origin.stats()["requests_per_connection"]["3"], 1);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let origin = Origin::start("");
    let mut stream = TcpStream::connect(origin.addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let targets =
        ["/status/201?delay=30ms", "/status/202", "/status/404?bytes=3000", "/status/200?chunked=1"];
    let mut all: String = targets.iter().map(|t| format!("GET {t} HTTP/1.1\r\nHost: o\r\n\r\n")).collect();
    all += "POST /echo HTTP/1.1\r\nHost: o\r\nContent-Length: 5\r\n\r\nhello";
    all += "HEAD / HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n";
    stream.write_all(all.as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    let order: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(order, ["201", "202", "404", "200", "200", "200"]);
    assert!(answers.contains("\r\n\r\nhelloHTTP/1.1 200"), "the echo stands in its place");
    assert!(answers.ends_with("\r\n\r\n"), "HEAD has no body");
}
