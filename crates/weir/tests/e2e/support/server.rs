//! A server for one test: a function that gets each connection, on a thread of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub struct Server {
    addr: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Server {
    /// `serve` gets a connection, and may block for as long as it likes.
    pub fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Server {
        // On every address of loopback, so that clients may come from any of them.
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let addr = SocketAddr::new([127, 0, 0, 1].into(), listener.local_addr().unwrap().port());
        let over = Arc::new(AtomicBool::new(false));
        let serve = Arc::new(serve);
        let ended = over.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), false) = (stream, ended.load(Ordering::Relaxed)) else { return };
                let serve = serve.clone();
                // Nobody's reads outlive a run by much.
                stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                std::thread::spawn(move || serve(stream));
            }
        });
        Server { addr, over }
    }

    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.addr);
    }
}

pub struct Request {
    /// Request line and fields.
    pub head: String,
    pub body: Vec<u8>,
}

impl Request {
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        let named = |line: &str| {
            let (n, value) = line.split_once(": ")?;
            n.eq_ignore_ascii_case(name).then_some(value.len())
        };
        self.head.lines().find_map(|line| named(line).map(|length| &line[line.len() - length..]))
    }
}

/// The next request with a Content-Length, or none once the client is gone.
pub fn read_request(from: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut request = Request { head, body: Vec::new() };
    let length = request.field("content-length").map_or(0, |n| n.parse().expect("a length"));
    request.body.resize(length, 0);
    from.read_exact(&mut request.body).ok()?;
    Some(request)
}
