//! An origin that runs out of file descriptors, which takes a process of its own.

mod support;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use support::{Client, on_each_backend, start};
use weir_net::Backend;

/// Not a test but the origin of the one below, in a process with few descriptors. It ends with its standard input.
#[test]
fn serve_another_process() {
    let Ok(name) = std::env::var("ORIGIN_BACKEND") else { return };
    let backend = if name == Backend::Mio.name() { Backend::Mio } else { Backend::Uring };
    let origin = start(backend, |_| {});
    println!("\nlistening at {}", origin.http_addrs()[0]);
    std::io::stdin().lines().for_each(drop);
}

/// This program again, as an origin that may have so many files open.
fn start_with_files(files: u32, backend: Backend) -> (Child, SocketAddr) {
    let mut child = Command::new("sh")
        .args(["-c", r#"ulimit -n "$1" && exec "$0" serve_another_process --exact --nocapture"#])
        .arg(std::env::current_exe().unwrap())
        .arg(files.to_string())
        .env("ORIGIN_BACKEND", backend.name())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let addr = lines.filter_map(|line| line.strip_prefix("listening at ")?.parse().ok()).next();
    (child, addr.expect("it says where it listens"))
}

#[test]
fn it_serves_on_when_no_file_is_left_and_accepts_again_when_one_is() {
    on_each_backend(|backend| {
        let (mut child, addr) = start_with_files(40, backend);
        let mut clients: Vec<Client> = (0..80).map(|_| Client::to(addr)).collect();
        for _ in 0..20 {
            assert_eq!(clients[0].get("/").status, 200);
        }
        let mut last = clients.pop().unwrap();
        last.send(support::get("/"));
        assert!(last.is_silent(), "80 connections fit into 40 files");
        clients.truncate(1);
        assert_eq!(last.response().status, 200);
        assert_eq!(clients[0].get("/").status, 200);
        drop(child.stdin.take());
        child.wait().unwrap();
    });
}
