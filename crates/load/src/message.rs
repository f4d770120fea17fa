//! The bytes of requests: built once where they never change, filled in where they hold templates.
//!
//! ```text
//! {{counter}}        0, 1, 2, … over the instance, in steps of the number of instances
//! {{random}}         a whole number below 2^32; {{random:LO-HI}} one from LO to HI, both included
//! {{uuid}}           a random UUID (RFC 9562 version 4)
//! ```

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;
use weir_model::plan::{Body, Request, Scheme};
use weir_wire::h1::{self, RequestKind};

use crate::LoadError;

/// One entry of the request list, ready to be sent.
pub(crate) struct Message {
    pub method: String,
    pub kind: RequestKind,
    pub has_body: bool,
    pub weight: u32,
    /// Which of the plan's origins it goes to.
    pub origin: usize,
    bytes: Bytes,
}

enum Bytes {
    Fixed(Vec<u8>),
    /// Head up to Content-Length and body apart, because the length depends on what is filled in.
    Filled {
        head: Vec<Part>,
        body: Option<Vec<Part>>,
    },
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Counter,
    Random { low: u64, high: u64 },
    Uuid,
}

/// Where the values of templates come from.
pub(crate) struct Filler {
    pub counter: u64,
    pub step: u64,
    pub rng: Xoshiro256PlusPlus,
}

impl Message {
    pub fn new(request: &Request, origin: usize) -> Result<Message, LoadError> {
        let kind = match request.method.as_str() {
            "HEAD" => RequestKind::Head,
            "CONNECT" => RequestKind::Connect,
            _ => RequestKind::Other,
        };
        let head = head_text(request);
        let bytes = match &request.body {
            Some(Body::File(path)) => {
                let content = std::fs::read(path)
                    .map_err(|e| LoadError::new(format!("{path}: {e}"), "the body file must be readable"))?;
                plain(&head, Some(&content))
            }
            Some(Body::Text(text)) if parts(text).iter().chain(&parts(&head)).any(is_template) => {
                Bytes::Filled { head: parts(&head), body: Some(parts(text)) }
            }
            Some(Body::Text(text)) => plain(&head, Some(text.as_bytes())),
            None if parts(&head).iter().any(is_template) => Bytes::Filled { head: parts(&head), body: None },
            None => plain(&head, None),
        };
        Ok(Message {
            method: request.method.clone(),
            kind,
            has_body: request.body.is_some(),
            weight: request.weight,
            origin,
            bytes: match bytes {
                // A file is sent as it is, but its head may hold templates.
                Bytes::Fixed(_) if parts(&head).iter().any(is_template) => {
                    return Err(LoadError::new(
                        "a body from a file together with a template in the path or a header",
                        "give the body with -d, or leave the template out",
                    ));
                }
                bytes => bytes,
            },
        })
    }

    /// The whole request, if it is the same each time.
    pub fn fixed(&self) -> Option<&[u8]> {
        match &self.bytes {
            Bytes::Fixed(bytes) => Some(bytes),
            Bytes::Filled { .. } => None,
        }
    }

    /// Appends the request with its templates filled in.
    pub fn write(&self, filler: &mut Filler, out: &mut Vec<u8>) {
        match &self.bytes {
            Bytes::Fixed(bytes) => out.extend_from_slice(bytes),
            Bytes::Filled { head, body } => {
                fill(head, filler, out);
                match body {
                    None => out.extend_from_slice(b"\r\n"),
                    Some(body) => {
                        let mut content = Vec::new();
                        fill(body, filler, &mut content);
                        end_head(out, &content);
                    }
                }
                filler.counter += filler.step;
            }
        }
    }
}

fn plain(head: &str, body: Option<&[u8]>) -> Bytes {
    let mut bytes = head.as_bytes().to_vec();
    match body {
        None => bytes.extend_from_slice(b"\r\n"),
        Some(body) => end_head(&mut bytes, body),
    }
    Bytes::Fixed(bytes)
}

fn end_head(out: &mut Vec<u8>, body: &[u8]) {
    h1::write_field_u64(out, b"Content-Length", body.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body);
}

/// Request line and fields, without the length of the body and the empty line. Host, User-Agent and Accept are added
/// unless they are given.
fn head_text(request: &Request) -> String {
    let mut text = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    let given = |name: &str| request.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    let mut field = |name: &str, value: &str| text.push_str(&format!("{name}: {value}\r\n"));
    if !given("host") {
        field("Host", &authority(request));
    }
    if !given("user-agent") {
        field("User-Agent", concat!("weir/", env!("CARGO_PKG_VERSION")));
    }
    if !given("accept") {
        field("Accept", "*/*");
    }
    for (name, value) in &request.headers {
        // The body decides its length; an empty value leaves a header out, as in curl.
        if !name.eq_ignore_ascii_case("content-length") && !value.is_empty() {
            field(name, value);
        }
    }
    text
}

/// RFC 9112 section 3.2: the port only where it is not the scheme's own.
fn authority(request: &Request) -> String {
    let host = if request.host.contains(':') { format!("[{}]", request.host) } else { request.host.clone() };
    let default = match request.scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    };
    if request.port == default { host } else { format!("{host}:{}", request.port) }
}

fn is_template(part: &Part) -> bool {
    !matches!(part, Part::Text(_))
}

/// Text that is no known template stands for itself.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(open) = text[at..].find("{{").map(|i| i + at) {
        let Some(close) = text[open..].find("}}").map(|i| i + open) else { break };
        match template(&text[open + 2..close]) {
            Some(part) => {
                if open > from {
                    parts.push(Part::Text(text[from..open].to_owned()));
                }
                parts.push(part);
                (from, at) = (close + 2, close + 2);
            }
            None => at = open + 2,
        }
    }
    if from < text.len() {
        parts.push(Part::Text(text[from..].to_owned()));
    }
    parts
}

fn template(name: &str) -> Option<Part> {
    match name.trim() {
        "counter" => Some(Part::Counter),
        "random" => Some(Part::Random { low: 0, high: u64::from(u32::MAX) }),
        "uuid" => Some(Part::Uuid),
        other => {
            let (low, high) = other.strip_prefix("random:")?.split_once('-')?;
            let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
            (low <= high).then_some(Part::Random { low, high })
        }
    }
}

fn fill(parts: &[Part], filler: &mut Filler, out: &mut Vec<u8>) {
    for part in parts {
        match part {
            Part::Text(text) => out.extend_from_slice(text.as_bytes()),
            Part::Counter => h1::write_u64(out, filler.counter),
            Part::Random { low, high } => h1::write_u64(out, filler.rng.random_range(*low..=*high)),
            Part::Uuid => out.extend_from_slice(uuid(filler.rng.random()).as_bytes()),
        }
    }
}

fn uuid(random: u128) -> String {
    let bits = random & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn request(headers: &[(&str, &str)], body: Option<&str>) -> Request {
        Request {
            method: "POST".into(),
            scheme: Scheme::Http,
            host: "h".into(),
            port: 8080,
            path: "/p?q={{counter}}".into(),
            headers: headers.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect(),
            body: body.map(|b| Body::Text(b.into())),
            weight: 1,
        }
    }

    fn filler() -> Filler {
        Filler { counter: 5, step: 2, rng: Xoshiro256PlusPlus::seed_from_u64(1) }
    }

    fn written(request: &Request, filler: &mut Filler) -> String {
        let mut out = Vec::new();
        Message::new(request, 0).expect("a good request").write(filler, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_length_is_that_of_the_filled_body() {
        let mut filler = filler();
        let text = written(&request(&[], Some("n={{counter}}00")), &mut filler);
        assert!(text.starts_with("POST /p?q=5 HTTP/1.1\r\nHost: h:8080\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 5\r\n\r\nn=500"), "{text}");
        assert_eq!(filler.counter, 7);
    }

    #[test]
    fn given_headers_replace_ours_and_an_empty_value_removes_them() {
        let text = written(
            &request(&[("host", "other"), ("User-Agent", ""), ("X", "{{random:3-3}}")], None),
            &mut filler(),
        );
        assert_eq!(text, "POST /p?q=5 HTTP/1.1\r\nAccept: */*\r\nhost: other\r\nX: 3\r\n\r\n");
    }

    #[test]
    fn what_is_no_template_is_text() {
        for text in ["", "plain", "{{", "{{nothing}}", "{{random:9-1}}", "{ {counter} }"] {
            let expected = if text.is_empty() { vec![] } else { vec![Part::Text(text.into())] };
            assert_eq!(parts(text), expected);
        }
        let mixed = parts("a{{x}}{{counter}}b{{ uuid }}");
        assert_eq!(mixed, [Part::Text("a{{x}}".into()), Part::Counter, Part::Text("b".into()), Part::Uuid]);
    }

    #[test]
    fn uuids_carry_their_version_and_variant() {
        assert_eq!(uuid(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uuid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
