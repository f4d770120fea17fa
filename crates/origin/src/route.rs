//! Which answer a request target asks for.
//!
//! ```text
//! /delay/10ms  /bytes/2048  /echo  /status/503      and on any path  ?delay=10ms&bytes=2048&status=503&chunked=1
//! /_weir/stats  /_weir/reset                        the origin's own counters; neither counted nor delayed
//! ```
//!
//! Every other path gets the origin's usual answer. Compares bytes; values are read as on the command line.

use weir_model::units::{Nanos, parse_duration, parse_size};

/// What to answer, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub status: u16,
    /// `None` is drawn from the origin's distribution.
    pub delay: Option<Nanos>,
    pub content: Content,
    pub chunked: bool,
    /// About the origin itself: no latency, no limit, no fault, not counted.
    pub control: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// So many bytes of the origin's own text.
    Fill(u64),
    /// The request's body.
    Echo,
    /// What went wrong.
    Text(&'static str),
    /// The counters.
    Stats,
    /// The counters are zeroed.
    Reset,
}

impl Answer {
    pub const fn usual(status: u16, bytes: u64) -> Answer {
        Answer { status, delay: None, content: Content::Fill(bytes), chunked: false, control: false }
    }

    const fn at_once(status: u16, content: Content) -> Answer {
        Answer { status, delay: Some(Nanos::ZERO), content, chunked: false, control: false }
    }

    /// To a request that cannot be read.
    pub fn refusal(status: u16) -> Answer {
        let text = match status {
            413 => "the body is too long to echo\n",
            414 => "the request line is too long\n",
            431 => "the head is too long\n",
            501 => "this transfer coding is not spoken here\n",
            505 => "this version is not spoken here\n",
            _ => "this is not HTTP/1.1\n",
        };
        Answer::at_once(status, Content::Text(text))
    }

    const fn control(status: u16, content: Content) -> Answer {
        Answer { control: true, ..Answer::at_once(status, content) }
    }
}

const BAD_DELAY: &str = "delay: not a time span; say 10ms, 250us or 1.5s\n";
const BAD_BYTES: &str = "bytes: not a size; say 2048, 4k or 1Mi\n";
const BAD_STATUS: &str = "status: not a final status; say a number from 200 to 599\n";
const BAD_CHUNKED: &str = "chunked: say 1 or 0\n";
const NO_TUNNEL: &str = "CONNECT: this origin is no proxy\n";
const NO_SUCH_CONTROL: &str = "say GET /_weir/stats or POST /_weir/reset\n";
const POST_ONLY: &str = "say POST /_weir/reset\n";

/// The answer to this request. `target` is path and query; `usual` is the origin's answer to everything else. A
/// parameter that cannot be read makes it a 400 that says so.
pub(crate) fn route(method: &[u8], target: &[u8], usual: Answer) -> Answer {
    if method == b"CONNECT" {
        return Answer::at_once(501, Content::Text(NO_TUNNEL));
    }
    if target == b"/" {
        return usual;
    }
    let (path, query) = match target.iter().position(|b| *b == b'?') {
        Some(at) => (&target[..at], &target[at + 1..]),
        None => (target, &target[..0]),
    };
    if let Some(control) = path.strip_prefix(b"/_weir/") {
        return route_control(method, control);
    }
    let answer = match by_path(path, usual) {
        Ok(answer) if query.is_empty() => return answer,
        Ok(answer) => by_query(query, answer),
        Err(wrong) => Err(wrong),
    };
    answer.unwrap_or_else(|wrong| Answer::at_once(400, Content::Text(wrong)))
}

fn route_control(method: &[u8], path: &[u8]) -> Answer {
    match path {
        b"stats" => Answer::control(200, Content::Stats),
        b"reset" if method == b"POST" => Answer::control(200, Content::Reset),
        b"reset" => Answer::control(405, Content::Text(POST_ONLY)),
        _ => Answer::control(404, Content::Text(NO_SUCH_CONTROL)),
    }
}

fn by_path(path: &[u8], usual: Answer) -> Result<Answer, &'static str> {
    match path.get(1) {
        Some(b'd' | b'b' | b'e' | b's') => {}
        _ => return Ok(usual),
    }
    if path == b"/echo" {
        Ok(Answer { content: Content::Echo, ..usual })
    } else if let Some(value) = path.strip_prefix(b"/delay/") {
        set(usual, b"delay", value)
    } else if let Some(value) = path.strip_prefix(b"/bytes/") {
        set(usual, b"bytes", value)
    } else if let Some(value) = path.strip_prefix(b"/status/") {
        set(usual, b"status", value)
    } else {
        Ok(usual)
    }
}

fn by_query(query: &[u8], mut answer: Answer) -> Result<Answer, &'static str> {
    for pair in query.split(|b| *b == b'&') {
        let equals = pair.iter().position(|b| *b == b'=').unwrap_or(pair.len());
        let value = pair.get(equals + 1..).unwrap_or_default();
        answer = set(answer, &pair[..equals], value)?;
    }
    Ok(answer)
}

/// Changes one parameter. Names that are none of ours are the client's own business.
fn set(answer: Answer, name: &[u8], value: &[u8]) -> Result<Answer, &'static str> {
    Ok(match name {
        b"delay" => Answer { delay: Some(span(value).ok_or(BAD_DELAY)?), ..answer },
        b"bytes" => Answer { content: Content::Fill(size_bytes(value).ok_or(BAD_BYTES)?), ..answer },
        b"status" => Answer { status: final_status(value).ok_or(BAD_STATUS)?, ..answer },
        b"chunked" => match value {
            b"1" | b"true" => Answer { chunked: true, ..answer },
            b"0" | b"false" => Answer { chunked: false, ..answer },
            _ => return Err(BAD_CHUNKED),
        },
        _ => answer,
    })
}

fn span(value: &[u8]) -> Option<Nanos> {
    parse_duration(std::str::from_utf8(value).ok()?).ok()
}

fn size_bytes(value: &[u8]) -> Option<u64> {
    parse_size(std::str::from_utf8(value).ok()?).ok()
}

/// One that ends an exchange, which the interim 1xx do not.
fn final_status(value: &[u8]) -> Option<u16> {
    let status: u16 = std::str::from_utf8(value).ok()?.parse().ok()?;
    (200..=599).contains(&status).then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Answer = Answer::usual(200, 12);

    fn check(target: &str, expected: Answer) {
        assert_eq!(route(b"GET", target.as_bytes(), USUAL), expected, "{target}");
    }

    fn check_text(method: &str, target: &str, status: u16, text: &'static str) {
        let expected = Answer::at_once(status, Content::Text(text));
        assert_eq!(route(method.as_bytes(), target.as_bytes(), USUAL), expected, "{method} {target}");
    }

    #[test]
    fn any_path_gets_the_usual_answer() {
        for path in [
            "",
            "/",
            "/users/7",
            "/delayed",
            "/bytes",
            "/echoes",
            "/status",
            "*",
            "/?",
            "?x=y",
            "/?page=2",
            "/a?b&c=d&",
        ] {
            check(path, USUAL);
        }
    }

    #[test]
    fn a_path_sets_one_thing() {
        check("/delay/10ms", Answer { delay: Some(Nanos::from_millis(10)), ..USUAL });
        check("/bytes/2048", Answer { content: Content::Fill(2048), ..USUAL });
        check("/status/503", Answer { status: 503, ..USUAL });
        check("/echo", Answer { content: Content::Echo, ..USUAL });
    }

    #[test]
    fn a_query_overrides_on_any_path() {
        let all = Answer {
            status: 404,
            delay: Some(Nanos::from_millis(5)),
            content: Content::Fill(1_000_000_000),
            chunked: true,
            control: false,
        };
        check("/users?delay=5ms&bytes=1g&status=404&chunked=1", all);
        check("/bytes/1?bytes=1g&delay=5ms&x=y&status=404&chunked=true", all);
        check("/echo?chunked=1", Answer { content: Content::Echo, chunked: true, ..USUAL });
    }

    #[test]
    fn what_cannot_be_read_is_a_400_that_says_so() {
        check_text("GET", "/delay/soon", 400, BAD_DELAY);
        check_text("GET", "/bytes/", 400, BAD_BYTES);
        for status in ["103", "199", "600", "ok", ""] {
            check_text("GET", &format!("/status/{status}"), 400, BAD_STATUS);
        }
        check_text("GET", "/?chunked=maybe", 400, BAD_CHUNKED);
        check_text("GET", "/?delay", 400, BAD_DELAY);
        check_text("CONNECT", "example.org:443", 501, NO_TUNNEL);
        check_text("CONNECT", "/", 501, NO_TUNNEL);
    }

    #[test]
    fn the_counters_are_told_apart() {
        check("/_weir/stats", Answer::control(200, Content::Stats));
        check("/_weir/stats?pretty", Answer::control(200, Content::Stats));
        check("/_weir/reset", Answer::control(405, Content::Text(POST_ONLY)));
        check("/_weir/", Answer::control(404, Content::Text(NO_SUCH_CONTROL)));
        assert_eq!(route(b"POST", b"/_weir/reset", USUAL), Answer::control(200, Content::Reset));
    }
}
