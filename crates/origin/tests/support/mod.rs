//! An origin on a port of its own, and a client that reads what it says byte by byte.

#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use weir_net::{Backend, Endpoint, Net, NetConfig};
use weir_origin::{Origin, OriginConfig, Stats};

/// Runs the same test on every event loop that this kernel has.
pub fn on_each_backend(test: impl Fn(Backend)) {
    for backend in [Backend::Mio, Backend::Uring] {
        match Net::new(NetConfig { backend: Some(backend) }) {
            Ok(_) => test(backend),
            Err(e) => eprintln!("{} is not here: {e}", backend.name()),
        }
    }
}

pub fn loopback() -> Endpoint {
    Endpoint::Tcp("127.0.0.1:0".parse().unwrap())
}

pub fn start(backend: Backend, change: impl FnOnce(&mut OriginConfig)) -> Origin {
    let mut config =
        OriginConfig { http: vec![loopback()], backend: Some(backend), ..OriginConfig::default() };
    change(&mut config);
    Origin::start(&config).expect("the origin starts")
}

/// A connection; a test that waits in vain fails after 20 s.
pub struct Client<S = TcpStream> {
    stream: S,
    read: Vec<u8>,
}

pub fn dial(origin: &Origin) -> Client {
    Client::to(origin.http_addrs()[0])
}

impl Client {
    pub fn to(addr: SocketAddr) -> Client {
        let stream = TcpStream::connect(addr).expect("the origin accepts");
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client::on(stream)
    }

    /// FIN, unless the connection is gone already.
    pub fn shutdown_write(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// Nothing comes within a moment. The moment may be too short to notice, never too long to pass.
    pub fn is_silent(&mut self) -> bool {
        self.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let result = self.fill();
        self.stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        matches!(result, Err(End::Timeout))
    }
}

/// Why no more bytes come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Fin,
    Rst,
    Timeout,
    /// What came is no HTTP response.
    NotHttp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Names in lower case.
    pub fields: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The time that the origin says it took, in milliseconds.
    pub fn server_ms(&self) -> f64 {
        self.field("server-timing").unwrap().strip_prefix("origin;dur=").unwrap().parse().unwrap()
    }
}

impl<S: Read + Write> Client<S> {
    pub fn on(stream: S) -> Client<S> {
        Client { stream, read: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).expect("the origin reads");
        self
    }

    pub fn get(&mut self, target: &str) -> Response {
        self.send(get(target)).response()
    }

    /// The next response, which has to come whole.
    pub fn response(&mut self) -> Response {
        self.try_response(false).expect("a whole response")
    }

    /// The head of the next response, which has no body.
    pub fn head_response(&mut self) -> Response {
        self.try_response(true).expect("a whole head")
    }

    pub fn try_response(&mut self, head_only: bool) -> Result<Response, End> {
        let mut response = self.try_head()?;
        let bodiless = head_only || matches!(response.status, 100 | 204 | 304);
        if bodiless {
            return Ok(response);
        }
        response.body = match response.field("content-length") {
            Some(length) => self.take(length.parse().map_err(|_| End::NotHttp)?)?,
            None => self.try_chunks()?,
        };
        Ok(response)
    }

    pub fn try_head(&mut self) -> Result<Response, End> {
        let head = self.take_until(b"\r\n\r\n")?;
        let head = String::from_utf8(head).map_err(|_| End::NotHttp)?;
        let (line, fields) = head.split_once("\r\n").ok_or(End::NotHttp)?;
        let status = line
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .ok_or(End::NotHttp)?;
        let fields = fields.lines().filter_map(|line| line.split_once(": "));
        let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_string())).collect();
        Ok(Response { status, fields, body: Vec::new() })
    }

    pub fn try_chunks(&mut self) -> Result<Vec<u8>, End> {
        let mut body = Vec::new();
        loop {
            let line = String::from_utf8(self.take_until(b"\r\n")?).map_err(|_| End::NotHttp)?;
            let size = usize::from_str_radix(line.trim_end(), 16).map_err(|_| End::NotHttp)?;
            let chunk = self.take(size + 2)?;
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Up to the end of the head.
    pub fn skip_head(&mut self) {
        self.take_until(b"\r\n\r\n").expect("the end of the head");
    }

    /// Everything up to the end of the connection, and how it ends.
    pub fn rest(&mut self) -> (Vec<u8>, End) {
        loop {
            if let Err(end) = self.fill() {
                return (std::mem::take(&mut self.read), end);
            }
        }
    }

    pub fn end(&mut self) -> End {
        let (rest, end) = self.rest();
        assert_eq!(String::from_utf8_lossy(&rest), "", "bytes before {end:?}");
        end
    }

    fn take_until(&mut self, mark: &[u8]) -> Result<Vec<u8>, End> {
        let mut from = 0;
        loop {
            if let Some(at) = self.read[from..].windows(mark.len()).position(|window| window == mark) {
                return Ok(self.read.drain(..from + at + mark.len()).collect());
            }
            from = self.read.len().saturating_sub(mark.len());
            self.fill()?;
        }
    }

    pub fn take(&mut self, bytes: usize) -> Result<Vec<u8>, End> {
        while self.read.len() < bytes {
            self.fill()?;
        }
        Ok(self.read.drain(..bytes).collect())
    }

    fn fill(&mut self) -> Result<(), End> {
        let mut buffer = [0; 65_536];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(End::Fin),
            Ok(n) => {
                self.read.extend_from_slice(&buffer[..n]);
                Ok(())
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Err(End::Timeout),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => Err(End::Rst),
            Err(e) => panic!("{e}"),
        }
    }
}

pub fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: origin\r\n\r\n")
}

/// The counters, once they are as wanted: what a connection's end does to them comes a little after the end.
pub fn stats_when(origin: &Origin, wanted: impl Fn(&Stats) -> bool) -> Stats {
    for _ in 0..10_000 {
        let stats = origin.stats();
        if wanted(&stats) {
            return stats;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the counters never came to what was wanted: {:?}", origin.stats());
}
