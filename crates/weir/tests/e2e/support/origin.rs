//! Servers as processes: `weir origin`, nginx, openssl.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::{free_port, weir};

/// `weir origin` on free ports. It ends when its standard input does, so it never outlives a test.
pub struct Origin {
    child: Child,
    ready: Value,
}

impl Origin {
    /// With HTTP on a free port. `flags` are separated by blanks.
    pub fn start(flags: &str) -> Origin {
        Origin::start_at("127.0.0.1:0", flags)
    }

    pub fn start_at(http: &str, flags: &str) -> Origin {
        let mut child = weir()
            .args(["origin", "--http", http, "--format", "json", "--with-parent"])
            .args(flags.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the origin starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).expect("the origin says where it listens");
        Origin { child, ready }
    }

    /// `127.0.0.1:PORT` of the HTTP listener.
    pub fn addr(&self) -> &str {
        self.ready["http"][0].as_str().unwrap().trim_start_matches("http://")
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr())
    }

    pub fn https_port(&self) -> u16 {
        self.ready["https"][0].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap()
    }

    pub fn https_url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.https_port())
    }

    /// What `/_weir/stats` says.
    pub fn stats(&self) -> Value {
        let mut stream = TcpStream::connect(self.addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(b"GET /_weir/stats HTTP/1.1\r\nHost: o\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}"))
    }

    pub fn accepted(&self) -> u64 {
        self.stats()["connections"]["accepted"].as_u64().unwrap()
    }

    /// At once, as a crash does it.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// nginx in a directory of its own, on a free port.
pub struct Nginx {
    child: Child,
    port: u16,
    dir: tempfile::TempDir,
}

impl Nginx {
    pub fn start() -> Nginx {
        let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"]
            .into_iter()
            .find(|path| Path::new(path).exists())
            .expect("nginx is not installed: `make setup` installs it (Debian: apt-get install nginx-light)");
        let dir = tempfile::tempdir().unwrap();
        // Another process may take the port in between; then nginx ends, and the next one is tried.
        for _ in 0..5 {
            let port = free_port();
            fs::write(dir.path().join("nginx.conf"), config(port)).unwrap();
            let mut child = Command::new(program)
                .args(["-c", "nginx.conf", "-e", "error.log", "-p"])
                .arg(dir.path())
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("nginx starts");
            while child.try_wait().unwrap().is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Nginx { child, port, dir };
                }
                std::thread::yield_now();
            }
        }
        panic!(
            "nginx does not start: {}",
            fs::read_to_string(dir.path().join("error.log")).unwrap_or_default()
        );
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Lines of the access log once nginx has ended, which writes what it still holds.
    pub fn requests_logged(mut self) -> usize {
        let log: PathBuf = self.dir.path().join("access.log");
        self.stop();
        fs::read_to_string(log).unwrap().lines().filter(|line| *line == "GET / 200").count()
    }

    fn stop(&mut self) {
        super::signal(&self.child, "QUIT");
        let _ = self.child.wait();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            self.stop();
        }
    }
}

/// `openssl s_server`, which can be told to speak one version of TLS.
pub struct Openssl {
    child: Child,
    port: u16,
}

impl Openssl {
    pub fn start(dir: &tempfile::TempDir, version: &str) -> Openssl {
        let identity = weir_net::tls::Authority::generate("test").issue(&["127.0.0.1".to_owned()]).unwrap();
        fs::write(dir.path().join("cert.pem"), identity.chain_pem).unwrap();
        fs::write(dir.path().join("key.pem"), identity.key_pem).unwrap();
        for _ in 0..5 {
            let port = free_port();
            let mut child = Command::new("openssl")
                .current_dir(dir.path())
                .args(["s_server", "-www", "-quiet", "-cert", "cert.pem", "-key", "key.pem", version])
                .args(["-accept", &format!("127.0.0.1:{port}")])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect(
                    "openssl is not installed: `make setup` installs it (Debian: apt-get install openssl)",
                );
            while child.try_wait().unwrap().is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Openssl { child, port };
                }
                std::thread::yield_now();
            }
        }
        panic!("openssl s_server does not start");
    }

    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}/", self.port)
    }
}

impl Drop for Openssl {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One process, which ends with us whatever happens to its master.
fn config(port: u16) -> String {
    format!(
        "daemon off; master_process off; worker_processes 1; pid nginx.pid;
        events {{ worker_connections 2048; }}
        http {{
            log_format short '$request_method $uri $status';
            access_log access.log short buffer=64k;
            keepalive_requests 1000000;
            client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp;
            uwsgi_temp_path tmp; scgi_temp_path tmp;
            server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 200 'hello, world'; }} }}
        }}"
    )
}
