//! Flags become a `Plan`: what was typed is checked as a whole, and every default is filled in. Pure: files that flags
//! name are read by the caller, or by the loader.
//!
//! A contradiction names both flags.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use url::Url;
use weir_model::gates::Gate;
use weir_model::plan::{Arrival, Body, NetOptions, Pace, Plan, Rate, Request, Scheme, Stop, Tls, TlsVersion};
use weir_model::pool::Policy;
use weir_model::profiles;
use weir_model::units::{Nanos, UsageError, parse_duration};

use crate::cli::RunArgs;
use crate::{template, values};

const DEFAULT_PROFILE: &str = "fixed";
/// The profile that does what `--no-keepalive` does.
const PER_REQUEST: &str = "per-request";
const WORKERS: u32 = 50;
const REQUESTS: u64 = 200;
/// A sample knows its request by a number of 16 bits.
const REQUEST_LIST_MAX: usize = u16::MAX as usize;

/// What the flags only name.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// Text of the `--requests` file.
    pub requests: Option<String>,
    /// Taken when there is no `--seed`.
    pub seed: u64,
}

pub fn plan_from(args: &RunArgs, inputs: &Inputs) -> Result<Plan, UsageError> {
    refuse_contradictions(args)?;
    let requests = requests_from(args, inputs)?;
    let net = net_from(args, &requests)?;
    Ok(Plan {
        net,
        requests,
        pace: pace_from(args)?,
        stop: stop_from(args),
        warmup: args.warmup.unwrap_or(Nanos::ZERO),
        timeout: args.timeout,
        profile: profile_id(args).to_owned(),
        pool: pool_from(args)?,
        instances: args.instances,
        tls: tls_from(args)?,
        seed: args.seed.unwrap_or(inputs.seed),
        gates: gates_from(args)?,
    })
}

// -- Contradictions -------------------------------------------------------------------------------------------------

/// One flag, and whether it was given.
type Given = (&'static str, bool);

fn refuse_contradictions(args: &RunArgs) -> Result<(), UsageError> {
    for (one, other, hint) in contradictions(args) {
        if one.1 && other.1 {
            return Err(UsageError::new(format!("`{}` contradicts `{}`", one.0, other.0), hint));
        }
    }
    Ok(())
}

fn contradictions(args: &RunArgs) -> Vec<(Given, Given, &'static str)> {
    let list = ("--requests", args.requests.is_some());
    let data = ("-d", args.data.is_some());
    let data_file = ("-D", args.data_file.is_some());
    let no_keepalive = match profile_id(args) {
        PER_REQUEST if !args.no_keepalive => ("--profile per-request", true),
        _ => ("--no-keepalive", args.no_keepalive),
    };
    let unix = ("--unix-socket", args.unix_socket.is_some());
    let tls = ("--tls", args.tls.is_some());
    let in_list = "write it into the list, request by request";
    let one_body = "a request has one body: give one of them";
    let no_idle = "a connection that serves one request is never idle: give one of them";
    vec![
        (list, ("URL", args.url.is_some()), "requests come from the list or from the URL: give one of them"),
        (list, ("-m", args.method.is_some()), in_list),
        (list, data, in_list),
        (list, data_file, in_list),
        (data, data_file, one_body),
        (
            ("--ramp", args.ramp.is_some()),
            ("-q", args.rate.is_some()),
            "both set the rate: --ramp FROM:TO:TIME stays at TO after TIME",
        ),
        (no_keepalive, ("--max-idle", args.max_idle.is_some()), no_idle),
        (no_keepalive, ("--idle-timeout", args.idle_timeout.is_some()), no_idle),
        (no_keepalive, ("--max-lifetime", args.max_lifetime.is_some()), no_idle),
        (
            no_keepalive,
            ("--requests-per-conn", args.requests_per_conn.is_some()),
            "the first is one request per connection: give one of them",
        ),
        (no_keepalive, ("--pick", args.pick.is_some()), no_idle),
        (unix, ("--connect-to", args.connect_to.is_some()), "both say where to connect to: give one of them"),
        (
            unix,
            ("--local-addr", args.local_addr.is_some()),
            "a Unix socket has no source address: leave one of them out",
        ),
        (
            ("-k", args.insecure),
            ("--cacert", args.cacert.is_some()),
            "-k accepts any certificate, --cacert only those of its authorities: give one of them",
        ),
        (tls, ("--tls-min", args.tls_min.is_some()), "--tls is the one version to offer: give one of them"),
        (tls, ("--tls-max", args.tls_max.is_some()), "--tls is the one version to offer: give one of them"),
        (
            ("--basic-auth", args.basic_auth.is_some()),
            ("-H Authorization", has_header(&args.headers, "authorization")),
            "both set the Authorization header: give one of them",
        ),
        (
            ("--host", args.host.is_some()),
            ("-H Host", has_header(&args.headers, "host")),
            "both set the Host header: give one of them",
        ),
        (
            ("--content-type", args.content_type.is_some()),
            ("-H Content-Type", has_header(&args.headers, "content-type")),
            "both set the Content-Type header: give one of them",
        ),
        (
            ("--accept", args.accept.is_some()),
            ("-H Accept", has_header(&args.headers, "accept")),
            "both set the Accept header: give one of them",
        ),
    ]
}

// -- Load -----------------------------------------------------------------------------------------------------------

fn pace_from(args: &RunArgs) -> Result<Pace, UsageError> {
    let arrival = args.arrival.unwrap_or(Arrival::Constant);
    match (args.rate, args.ramp) {
        (Some(per_s), _) => Ok(Pace::Open { rate: Rate::Constant { per_s }, arrival }),
        (None, Some(ramp)) => {
            let values::Ramp { from_per_s, to_per_s, over } = ramp;
            Ok(Pace::Open { rate: Rate::Ramp { from_per_s, to_per_s, over }, arrival })
        }
        (None, None) => closed_from(args),
    }
}

fn closed_from(args: &RunArgs) -> Result<Pace, UsageError> {
    if args.arrival.is_some() {
        return Err(UsageError::new(
            "`--arrival` needs `-q` or `--ramp`",
            "without a rate each worker sends when its last request ended: give -q, or leave --arrival out",
        ));
    }
    let workers = args.workers.unwrap_or(WORKERS);
    if workers < args.instances {
        return Err(UsageError::new(
            format!("`-c {workers}` is less than `--instances {}`", args.instances),
            "-c is the total: each instance needs a worker at least",
        ));
    }
    Ok(Pace::Closed { workers })
}

fn stop_from(args: &RunArgs) -> Stop {
    let requests = match (args.count, args.duration) {
        (None, None) => Some(REQUESTS),
        (count, _) => count,
    };
    Stop { requests, duration: args.duration }
}

fn gates_from(args: &RunArgs) -> Result<Vec<String>, UsageError> {
    for gate in &args.gates {
        Gate::parse(gate).map_err(|e| UsageError::new(format!("--gate: {}", e.message), e.hint))?;
    }
    Ok(args.gates.clone())
}

// -- Pool -----------------------------------------------------------------------------------------------------------

fn profile_id(args: &RunArgs) -> &str {
    args.profile.as_deref().unwrap_or(DEFAULT_PROFILE)
}

/// The profile's values, changed by single flags, then by `--pool-set`.
fn pool_from(args: &RunArgs) -> Result<Policy, UsageError> {
    let mut pool = profile_policy(args)?;
    pool.max_conns = args.pool.or(pool.max_conns);
    pool.max_idle = args.max_idle.or(pool.max_idle);
    pool.max_pending = args.max_pending.or(pool.max_pending);
    pool.acquire_timeout = args.acquire_timeout.or(pool.acquire_timeout);
    pool.connect_timeout = args.connect_timeout.or(pool.connect_timeout);
    pool.idle_timeout = args.idle_timeout.or(pool.idle_timeout);
    pool.max_lifetime = args.max_lifetime.or(pool.max_lifetime);
    pool.max_requests_per_conn = args.requests_per_conn.or(pool.max_requests_per_conn);
    pool.pick = args.pick.unwrap_or(pool.pick);
    pool.race = args.race.unwrap_or(pool.race);
    pool.reuse &= !args.no_keepalive;
    for (key, value) in &args.pool_set {
        pool = with_value(&pool, key, value)?;
    }
    pool.check().map_err(|message| UsageError::new(message, "see `weir profiles` for values that work"))?;
    match (args.max_idle, pool.max_conns) {
        (Some(idle), Some(conns)) if args.pool.is_some() && idle > conns => Err(UsageError::new(
            format!("`--max-idle {idle}` is more than `--pool {conns}`"),
            "a pool has no more idle connections than connections: leave --max-idle out",
        )),
        _ => Ok(pool),
    }
}

fn profile_policy(args: &RunArgs) -> Result<Policy, UsageError> {
    let workers = args.workers.unwrap_or(WORKERS);
    // The profile that is as wide as the load keeps as many connections idle as it may open.
    let width = args.pool.unwrap_or(workers.div_ceil(args.instances));
    let id = profile_id(args);
    let profile = profiles::find(id, width).ok_or_else(|| {
        let ids: Vec<&str> = profiles::all().iter().map(|profile| profile.id).collect();
        UsageError::new(format!("--profile: unknown value `{id}`"), format!("one of {}", ids.join(", ")))
    })?;
    Ok(profile.policy)
}

/// Sets one value by its name in the JSON. Values are written as in JSON, or as `name`, `name:argument` or a span.
fn with_value(pool: &Policy, key: &str, value: &str) -> Result<Policy, UsageError> {
    let json = serde_json::to_value(pool).expect("a policy is plain data");
    let fields = json.as_object().expect("a policy has fields");
    if !fields.contains_key(key) {
        let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
        return Err(UsageError::new(
            format!("--pool-set: unknown key `{key}`"),
            format!("one of {}", keys.join(", ")),
        ));
    }
    let with = |value: serde_json::Value| {
        let mut fields = fields.clone();
        fields.insert(key.to_owned(), value);
        serde_json::from_value(serde_json::Value::Object(fields))
    };
    let mut refused = String::new();
    for candidate in readings(key, value) {
        match with(candidate) {
            Ok(policy) => return Ok(policy),
            Err(error) => refused = error.to_string(),
        }
    }
    Err(UsageError::new(
        format!("--pool-set {key}: `{value}` does not fit: {refused}"),
        "`weir profiles ID` shows a profile's values, and --format json how they are written",
    ))
}

/// What `value` can mean, the likeliest first.
fn readings(key: &str, value: &str) -> Vec<serde_json::Value> {
    let is_span = matches!(key, "acquire_timeout" | "connect_timeout" | "idle_timeout" | "max_lifetime");
    let span = |text: &str| parse_duration(text).ok().map(|span| serde_json::Value::from(span.0));
    let json =
        serde_json::from_str(value).ok().filter(|json: &serde_json::Value| !(is_span && json.is_number()));
    let with_argument = value.split_once(':').into_iter().flat_map(|(name, argument)| {
        let number = argument.parse::<u64>().ok().map(serde_json::Value::from);
        [number, span(argument)]
            .into_iter()
            .flatten()
            .map(move |argument| serde_json::json!({ name: argument }))
    });
    let mut readings: Vec<serde_json::Value> = json.into_iter().collect();
    readings.extend(span(value).filter(|_| is_span));
    readings.extend(with_argument);
    readings.push(serde_json::Value::from(value));
    readings
}

// -- Connection -----------------------------------------------------------------------------------------------------

fn tls_from(args: &RunArgs) -> Result<Tls, UsageError> {
    let alone = match (&args.cert, &args.key) {
        (Some(_), None) => Some(("--cert", "--key")),
        (None, Some(_)) => Some(("--key", "--cert")),
        _ => None,
    };
    if let Some((given, missing)) = alone {
        return Err(UsageError::new(
            format!("`{given}` needs `{missing}`"),
            "a client certificate and its key go together; both may name the same PEM file",
        ));
    }
    let min_version = args.tls.or(args.tls_min).unwrap_or(TlsVersion::V1_2);
    let max_version = args.tls.or(args.tls_max).unwrap_or(TlsVersion::V1_3);
    if min_version > max_version {
        return Err(UsageError::new(
            "`--tls-min 1.3` is above `--tls-max 1.2`",
            "no version is left to offer: raise --tls-max or lower --tls-min",
        ));
    }
    Ok(Tls {
        verify: !args.insecure,
        cacert: args.cacert.clone(),
        cert: args.cert.clone(),
        key: args.key.clone(),
        resumption: !args.no_session_resumption,
        min_version,
        max_version,
    })
}

fn net_from(args: &RunArgs, requests: &[Request]) -> Result<NetOptions, UsageError> {
    let connect_to = args.connect_to.as_ref().map(|to| applied(to, requests)).transpose()?;
    Ok(NetOptions {
        io: args.io,
        connect_to,
        unix_socket: args.unix_socket.clone(),
        local_addrs: args.local_addr.clone().map(|addrs| addrs.0).unwrap_or_default(),
    })
}

/// Where `--connect-to` leads, if it is meant for all requests.
fn applied(to: &values::ConnectTo, requests: &[Request]) -> Result<(String, u16), UsageError> {
    if let Some((host, port)) = &to.only_for {
        let meant = |r: &Request| r.host == *host && port.is_none_or(|port| r.port == port);
        if let Some(other) = requests.iter().find(|r| !meant(r)) {
            return Err(UsageError::new(
                format!(
                    "--connect-to is for `{host}`, but a request goes to `{}:{}`",
                    other.host, other.port
                ),
                "write HOST:PORT alone to lead every request there",
            ));
        }
    }
    Ok((to.host.clone(), to.port))
}

// -- Requests -------------------------------------------------------------------------------------------------------

fn requests_from(args: &RunArgs, inputs: &Inputs) -> Result<Vec<Request>, UsageError> {
    match (&args.url, &inputs.requests) {
        (Some(url), _) => Ok(vec![request_from_url(args, url)?]),
        (None, Some(text)) => request_list(args, text),
        (None, None) => Err(UsageError::new(
            "neither a URL nor `--requests` is given",
            "say where to send: weir run http://127.0.0.1:8080/",
        )),
    }
}

fn request_from_url(args: &RunArgs, url: &str) -> Result<Request, UsageError> {
    let target = target_from(url)?;
    let listed = Listed {
        method: args.method.clone().unwrap_or_else(|| "GET".to_owned()),
        url: url.to_owned(),
        headers: BTreeMap::new(),
        body: None,
        body_file: None,
        weight: 1,
    };
    let request = assembled(args, &listed, target)?;
    Ok(Request { body: body_from(args)?, ..request })
}

fn body_from(args: &RunArgs) -> Result<Option<Body>, UsageError> {
    match (&args.data, &args.data_file) {
        (Some(text), _) => match text.strip_prefix('@') {
            Some(path) => Ok(Some(Body::File(path.to_owned()))),
            None => {
                template::check(text).map_err(|e| UsageError::new(format!("-d: {}", e.message), e.hint))?;
                Ok(Some(Body::Text(text.clone())))
            }
        },
        (None, Some(path)) => Ok(Some(Body::File(path.clone()))),
        (None, None) => Ok(None),
    }
}

/// One entry of the `--requests` file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    #[serde(default = "get")]
    method: String,
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    body_file: Option<String>,
    #[serde(default = "one")]
    weight: u32,
}

fn get() -> String {
    "GET".to_owned()
}

fn one() -> u32 {
    1
}

fn request_list(args: &RunArgs, text: &str) -> Result<Vec<Request>, UsageError> {
    let mut requests = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place =
            |e: UsageError| UsageError::new(format!("--requests, line {}: {}", index + 1, e.message), e.hint);
        requests.push(request_from_line(args, line).map_err(place)?);
    }
    match requests.len() {
        0 => {
            Err(UsageError::new("--requests: the list is empty", "a line is `METHOD URL`, or a JSON object"))
        }
        n if n > REQUEST_LIST_MAX => Err(UsageError::new(
            format!("--requests: {n} requests are more than {REQUEST_LIST_MAX}"),
            "split the list, or use a template such as {{random:1-100000}} in the URL",
        )),
        _ => Ok(requests),
    }
}

fn request_from_line(args: &RunArgs, line: &str) -> Result<Request, UsageError> {
    let listed = if line.starts_with('{') { listed_from_json(line)? } else { listed_from_words(line)? };
    if listed.weight == 0 {
        return Err(UsageError::new("`weight` is 0", "such a request is never sent: leave the line out"));
    }
    let body = match (&listed.body, &listed.body_file) {
        (Some(_), Some(_)) => {
            return Err(UsageError::new(
                "`body` contradicts `body_file`",
                "a request has one body: give one of them",
            ));
        }
        (Some(text), None) => {
            template::check(text)?;
            Some(Body::Text(text.clone()))
        }
        (None, file) => file.clone().map(Body::File),
    };
    let target = target_from(&listed.url)?;
    Ok(Request { body, ..assembled(args, &listed, target)? })
}

fn listed_from_json(line: &str) -> Result<Listed, UsageError> {
    serde_json::from_str(line).map_err(|e| {
        UsageError::new(
            format!("{e}"),
            r#"write {"method": "GET", "url": "http://…", "headers": {"name": "value"}, "body": "…", "weight": 1}"#,
        )
    })
}

fn listed_from_words(line: &str) -> Result<Listed, UsageError> {
    let fail =
        || UsageError::new(format!("`{line}` is no request"), "write METHOD URL, or METHOD URL weight=N");
    let words: Vec<&str> = line.split_whitespace().collect();
    let (method, url, weight) = match words[..] {
        [method, url] => (method, url, 1),
        [method, url, weight] => {
            (method, url, weight.strip_prefix("weight=").and_then(|n| n.parse().ok()).ok_or_else(fail)?)
        }
        _ => return Err(fail()),
    };
    Ok(Listed {
        method: method.to_owned(),
        url: url.to_owned(),
        headers: BTreeMap::new(),
        body: None,
        body_file: None,
        weight,
    })
}

/// Everything but the body. A request's own headers win over those of the flags.
fn assembled(args: &RunArgs, listed: &Listed, target: Target) -> Result<Request, UsageError> {
    if !values::is_token(&listed.method) {
        return Err(UsageError::new(
            format!("`{}` is no method", listed.method),
            "a method is one word, such as GET or POST",
        ));
    }
    let mut headers = Vec::new();
    for (name, value) in &listed.headers {
        let header = values::header_parts(name, value)
            .map_err(|message| UsageError::new(message, "headers are {\"name\": \"value\"}"))?;
        headers.push(header);
    }
    let from_flags: Vec<(String, String)> =
        flag_headers(args)?.into_iter().filter(|(name, _)| !has_header(&headers, name)).collect();
    headers.extend(from_flags);
    if let Some(credentials) = &target.credentials
        && !has_header(&headers, "authorization")
    {
        headers.push(basic_auth(credentials));
    }
    refuse_framing(&headers)?;
    for (name, value) in &headers {
        template::check(value)
            .map_err(|e| UsageError::new(format!("header {name}: {}", e.message), e.hint))?;
    }
    Ok(Request {
        method: listed.method.clone(),
        scheme: target.scheme,
        host: target.host,
        port: target.port,
        path: target.path,
        headers,
        body: None,
        weight: listed.weight,
    })
}

/// Where a request ends follows from its body. A field that says otherwise makes a server take the next request for a
/// body, or the body for a request; so do two names for one host (RFC 9112 sections 3.2 and 6.3).
fn refuse_framing(headers: &[(String, String)]) -> Result<(), UsageError> {
    for name in ["Content-Length", "Transfer-Encoding"] {
        if has_header(headers, name) {
            return Err(UsageError::new(
                format!("header {name}: the length of the body is written by weir"),
                "leave it out: it follows from -d or -D",
            ));
        }
    }
    match headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("host")).count() {
        0 | 1 => Ok(()),
        _ => Err(UsageError::new("header Host: given twice", "a request is for one host: give one of them")),
    }
}

fn flag_headers(args: &RunArgs) -> Result<Vec<(String, String)>, UsageError> {
    let mut headers = args.headers.clone();
    let shorthands = [("Host", &args.host), ("Content-Type", &args.content_type), ("Accept", &args.accept)];
    for (name, value) in shorthands {
        let Some(value) = value else { continue };
        let header = values::header_parts(name, value)
            .map_err(|message| UsageError::new(message, format!("{name} is one line")))?;
        headers.push(header);
    }
    if let Some(credentials) = &args.basic_auth {
        if !credentials.contains(':') {
            return Err(UsageError::new("--basic-auth has no `:`", "write USER:PASSWORD"));
        }
        headers.push(basic_auth(credentials.as_bytes()));
    }
    Ok(headers)
}

/// RFC 7617.
fn basic_auth(credentials: &[u8]) -> (String, String) {
    ("Authorization".to_owned(), format!("Basic {}", STANDARD.encode(credentials)))
}

fn has_header(headers: &[(String, String)], name: &str) -> bool {
    headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
}

/// The parts of a URL that a request needs.
#[derive(Debug)]
struct Target {
    scheme: Scheme,
    host: String,
    port: u16,
    path: String,
    /// `user:password`, percent-decoded.
    credentials: Option<Vec<u8>>,
}

fn target_from(text: &str) -> Result<Target, UsageError> {
    template::check(text)?;
    let (hidden, templates) = template::hide(text);
    let url = parsed_url(text, &hidden)?;
    let scheme = scheme_of(text, &url)?;
    let host = url.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or_else(|| url_error(text, "it has no host", "write http://HOST:PORT/PATH"))?;
    let before_path = format!("{host}{}{}", url.username(), url.password().unwrap_or_default());
    if template::is_in(&before_path) {
        return Err(url_error(
            text,
            "a template stands before the path",
            "use templates in the path and the query",
        ));
    }
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    Ok(Target {
        scheme,
        host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port: url.port_or_known_default().expect("http and https have a default port"),
        path: template::show(&path, &templates),
        credentials: credentials_of(&url),
    })
}

fn parsed_url(text: &str, hidden: &str) -> Result<Url, UsageError> {
    Url::parse(hidden).map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => {
            url_error(text, "it has no scheme", &format!("did you mean http://{text} ?"))
        }
        url::ParseError::EmptyHost => url_error(text, "it has no host", "write http://HOST:PORT/PATH"),
        url::ParseError::InvalidPort => {
            url_error(text, "its port is no port", "a port is a number from 1 to 65535")
        }
        other => url_error(text, &other.to_string(), "write http://HOST:PORT/PATH"),
    })
}

fn scheme_of(text: &str, url: &Url) -> Result<Scheme, UsageError> {
    match url.scheme() {
        "http" | "https" if url.port() == Some(0) => {
            Err(url_error(text, "nothing listens on port 0", "a port is a number from 1 to 65535"))
        }
        "http" => Ok(Scheme::Http),
        "https" => Ok(Scheme::Https),
        // `localhost:8080/` parses as a URL of the scheme `localhost`.
        _ if url.cannot_be_a_base() => {
            Err(url_error(text, "it has no scheme", &format!("did you mean http://{text} ?")))
        }
        other => Err(url_error(text, &format!("unknown scheme `{other}`"), "write http:// or https://")),
    }
}

fn url_error(text: &str, what: &str, hint: &str) -> UsageError {
    UsageError::new(format!("URL `{text}`: {what}"), hint)
}

fn credentials_of(url: &Url) -> Option<Vec<u8>> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let both = format!("{}:{}", url.username(), url.password().unwrap_or_default());
    Some(percent_encoding::percent_decode_str(&both).collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;
    use crate::cli::{Cli, Command};

    const URL: &str = "http://h:81/";

    fn args(typed: &str) -> RunArgs {
        let words = ["weir", "run"].into_iter().chain(typed.split_whitespace());
        match Cli::try_parse_from(words).unwrap_or_else(|e| panic!("{typed}: {e}")).command {
            Command::Run(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    fn plan(typed: &str) -> Result<Plan, UsageError> {
        plan_from(&args(typed), &Inputs { requests: None, seed: 7 })
    }

    fn listed(typed: &str, list: &str) -> Result<Plan, UsageError> {
        plan_from(&args(typed), &Inputs { requests: Some(list.to_owned()), seed: 7 })
    }

    /// Each case: flags beside the URL, where to look in the plan, what is there.
    fn check(cases: &[(&str, &str, Value)]) {
        for (flags, pointer, expected) in cases {
            let plan = plan(&format!("{flags} {URL}")).unwrap_or_else(|e| panic!("{flags}: {e:?}"));
            let json = serde_json::to_value(plan).unwrap();
            assert_eq!(json.pointer(pointer), Some(expected), "{flags}: {pointer}");
        }
    }

    #[test]
    fn defaults_are_those_of_hey() {
        let plan = plan(URL).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&plan).unwrap());
    }

    #[test]
    fn flags_end_up_in_the_plan() {
        check(&[
            ("-c 300 -n 50k", "/pace", json!({"loop": "closed", "workers": 300})),
            ("-c 300 -n 50k", "/stop", json!({"requests": 50_000, "duration": null})),
            ("-z 10s", "/stop", json!({"requests": null, "duration": 10_000_000_000u64})),
            ("-z 10 -n 5", "/stop", json!({"requests": 5, "duration": 10_000_000_000u64})),
            ("-q 2k --arrival poisson", "/pace/arrival", json!("poisson")),
            ("-q 2k", "/pace/rate", json!({"shape": "constant", "per_s": 2000.0})),
            (
                "--ramp 100:2000:30s",
                "/pace/rate",
                json!({"shape": "ramp", "from_per_s": 100.0, "to_per_s": 2000.0, "over": 30_000_000_000u64}),
            ),
            ("--warmup 2s", "/warmup", json!(2_000_000_000u64)),
            ("-t 500ms", "/timeout", json!(500_000_000)),
            ("-c 400 --pool 100", "/pool/max_conns", json!(100)),
            ("-c 400", "/pool/max_conns", json!(400)),
            ("-c 400 --instances 3", "/pool/max_conns", json!(134)),
            ("-q 100 --pool 80", "/pool/max_idle", json!(80)),
            ("--pool 100 --max-idle 0", "/pool/max_idle", json!(0)),
            ("--max-pending 0", "/pool/max_pending", json!(0)),
            ("--acquire-timeout 45", "/pool/acquire_timeout", json!(45_000_000_000u64)),
            ("--idle-timeout 90s", "/pool/idle_timeout", json!(90_000_000_000u64)),
            ("--max-lifetime 5m", "/pool/max_lifetime", json!(300_000_000_000u64)),
            ("--requests-per-conn 100", "/pool/max_requests_per_conn", json!(100)),
            ("--no-keepalive", "/pool/reuse", json!(false)),
            ("--disable-keepalive", "/pool/reuse", json!(false)),
            ("--pick lru --race race", "/pool/pick", json!("lru")),
            ("--race race", "/pool/race", json!("race")),
            ("--profile go-nethttp", "/pool/max_idle", json!(2)),
            ("--profile go-nethttp --max-idle 100", "/pool/max_idle", json!(100)),
            ("--profile go-nethttp", "/profile", json!("go-nethttp")),
            ("--profile per-request", "/pool/reuse", json!(false)),
            ("--pool-set order=lifo", "/pool/order", json!("lifo")),
            ("--pool-set dial=eager:10", "/pool/dial", json!({"eager": 10})),
            (
                "--pool-set validate=probe_after:2s",
                "/pool/validate",
                json!({"probe_after": 2_000_000_000u64}),
            ),
            ("--pool-set idle_timeout=5", "/pool/idle_timeout", json!(5_000_000_000u64)),
            ("--pool-set idle_timeout=null", "/pool/idle_timeout", json!(null)),
            ("--pool-set pending_counts_dials=true", "/pool/pending_counts_dials", json!(true)),
            ("-k", "/tls/verify", json!(false)),
            ("--tls 1.2", "/tls/max_version", json!("1.2")),
            ("--tls-min 1.3", "/tls/min_version", json!("1.3")),
            ("--no-session-resumption", "/tls/resumption", json!(false)),
            ("--cert a --key b", "/tls/cert", json!("a")),
            ("--connect-to x:90", "/net/connect_to", json!(["x", 90])),
            ("--connect-to h:81:x:90", "/net/connect_to", json!(["x", 90])),
            ("--unix-socket /s", "/net/unix_socket", json!("/s")),
            ("--local-addr 127.0.0.2-127.0.0.3", "/net/local_addrs", json!(["127.0.0.2", "127.0.0.3"])),
            ("--io mio", "/net/io", json!("mio")),
            ("--seed 42", "/seed", json!(42)),
            ("", "/seed", json!(7)),
            ("-m POST -d x=1", "/requests/0/method", json!("POST")),
            ("-d x={{uuid}}", "/requests/0/body", json!({"text": "x={{uuid}}"})),
            ("-d @f", "/requests/0/body", json!({"file": "f"})),
            ("-D f", "/requests/0/body", json!({"file": "f"})),
            (
                "-H a:b -T text/plain",
                "/requests/0/headers",
                json!([["a", "b"], ["Content-Type", "text/plain"]]),
            ),
            ("-a u:p", "/requests/0/headers", json!([["Authorization", "Basic dTpw"]])),
            ("--gate p(99)<5ms --gate errors<0.1%", "/gates", json!(["p(99)<5ms", "errors<0.1%"])),
        ]);
    }

    #[test]
    fn contradictions_name_both_flags() {
        let cases = [
            ("-d a -D b", "`-d` contradicts `-D`"),
            ("-q 5 --ramp 1:2:3", "`--ramp` contradicts `-q`"),
            ("--arrival poisson", "`--arrival` needs `-q` or `--ramp`"),
            ("--unix-socket s --connect-to a:1", "`--unix-socket` contradicts `--connect-to`"),
            ("--unix-socket s --local-addr 127.0.0.1", "`--unix-socket` contradicts `--local-addr`"),
            ("--no-keepalive --max-idle 3", "`--no-keepalive` contradicts `--max-idle`"),
            ("--no-keepalive --idle-timeout 3", "`--no-keepalive` contradicts `--idle-timeout`"),
            ("--no-keepalive --max-lifetime 3", "`--no-keepalive` contradicts `--max-lifetime`"),
            ("--no-keepalive --requests-per-conn 3", "`--no-keepalive` contradicts `--requests-per-conn`"),
            ("--no-keepalive --pick lru", "`--no-keepalive` contradicts `--pick`"),
            ("--profile per-request --max-idle 3", "`--profile per-request` contradicts `--max-idle`"),
            ("-c 2 --instances 3", "`-c 2` is less than `--instances 3`"),
            ("--pool 5 --max-idle 6", "`--max-idle 6` is more than `--pool 5`"),
            ("-k --cacert f", "`-k` contradicts `--cacert`"),
            ("--cert f", "`--cert` needs `--key`"),
            ("--key f", "`--key` needs `--cert`"),
            ("--tls 1.2 --tls-min 1.2", "`--tls` contradicts `--tls-min`"),
            ("--tls-min 1.3 --tls-max 1.2", "`--tls-min 1.3` is above `--tls-max 1.2`"),
            ("-a u:p -H authorization:x", "`--basic-auth` contradicts `-H Authorization`"),
            ("--connect-to a:1:b:2", "--connect-to is for `a`, but a request goes to `h:81`"),
            ("--profile go", "--profile: unknown value `go`"),
            ("--pool-set ordr=lifo", "--pool-set: unknown key `ordr`"),
            ("--gate p(99)<<5ms", "--gate: gate `p(99)<<5ms`"),
            ("-d {{countr}}", "-d: unknown template `{{countr}}`"),
            ("-H a:{{x}}", "header a: unknown template `{{x}}`"),
            (
                "-H content-length:5 -d abc",
                "header Content-Length: the length of the body is written by weir",
            ),
            ("-H Transfer-Encoding:chunked", "header Transfer-Encoding: the length of the body is written"),
            ("-H Host:a -H host:b", "header Host: given twice"),
            ("-m G(T", "`G(T` is no method"),
            ("-a user", "--basic-auth has no `:`"),
        ];
        for (flags, expected) in cases {
            let error = plan(&format!("{flags} {URL}")).expect_err(flags);
            assert!(error.message.starts_with(expected), "{flags}: {}", error.message);
            assert!(!error.hint.is_empty(), "{flags}");
        }
    }

    #[test]
    fn a_url_is_taken_apart() {
        let cases = [
            ("http://h", "http h 80 / -"),
            ("https://h", "https h 443 / -"),
            ("http://[::1]:8080/a?b=c#d", "http ::1 8080 /a?b=c -"),
            ("http://H.example/%41/ü", "http h.example 80 /%41/%C3%BC -"),
            ("http://h/{{counter}}?x={{random:1-9}}", "http h 80 /{{counter}}?x={{random:1-9}} -"),
            ("http://user:p%40ss@h/", "http h 80 / Basic dXNlcjpwQHNz"),
        ];
        for (url, expected) in cases {
            let plan = plan(url).unwrap_or_else(|e| panic!("{url}: {e:?}"));
            let Request { scheme, host, port, path, headers, .. } = &plan.requests[0];
            let scheme = if *scheme == Scheme::Http { "http" } else { "https" };
            let credentials = headers.first().map_or("-", |(_, value)| value);
            assert_eq!(format!("{scheme} {host} {port} {path} {credentials}"), expected, "{url}");
        }
    }

    #[test]
    fn a_bad_url_is_refused_with_what_to_write() {
        let cases = [
            ("localhost:8080/", "it has no scheme", "did you mean http://localhost:8080/ ?"),
            ("127.0.0.1:8080", "it has no scheme", "did you mean http://127.0.0.1:8080 ?"),
            ("/path", "it has no scheme", "did you mean http:///path ?"),
            ("ftp://h/", "unknown scheme `ftp`", "write http:// or https://"),
            ("http://", "it has no host", "write http://HOST:PORT/PATH"),
            ("http://h:99999/", "its port is no port", "a port is a number from 1 to 65535"),
            ("http://h:0/", "nothing listens on port 0", "a port is a number from 1 to 65535"),
            (
                "http://{{counter}}/",
                "a template stands before the path",
                "use templates in the path and the query",
            ),
        ];
        for (url, what, hint) in cases {
            let error = plan(url).expect_err(url);
            assert_eq!((error.message, error.hint.as_str()), (format!("URL `{url}`: {what}"), hint));
        }
    }

    #[test]
    fn a_url_or_a_list_is_needed_and_not_both() {
        assert_eq!(plan("").unwrap_err().message, "neither a URL nor `--requests` is given");
        let both = listed("--requests f http://h/", "GET http://h/").unwrap_err();
        assert_eq!(both.message, "`--requests` contradicts `URL`");
    }

    #[test]
    fn a_list_mixes_words_and_json() {
        let list = r#"
            # comment
            GET http://h/a
            POST http://h/b weight=3
            {"method": "PUT", "url": "https://h/c", "headers": {"x": "{{uuid}}", "a": "own"}, "body": "{{counter}}", "weight": 2}
            {"url": "http://h/d", "body_file": "f"}
        "#;
        let plan = listed("--requests f -H a:flag", list).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&plan.requests).unwrap());
    }

    #[test]
    fn a_bad_line_is_named() {
        let cases = [
            ("GET http://h/\nGET", "--requests, line 2: `GET` is no request"),
            ("GET http://h/ weight=x", "--requests, line 1: `GET http://h/ weight=x` is no request"),
            ("GET http://h/ weight=0", "--requests, line 1: `weight` is 0"),
            ("GET h:1/", "--requests, line 1: URL `h:1/`: it has no scheme"),
            (r#"{"url": "http://h/", "wieght": 1}"#, "--requests, line 1: unknown field `wieght`"),
            (
                r#"{"url": "http://h/", "headers": {"a b": "c"}}"#,
                "--requests, line 1: `a b` is no header name",
            ),
            (
                r#"{"url": "http://h/", "body": "a", "body_file": "b"}"#,
                "--requests, line 1: `body` contradicts",
            ),
            ("# nothing", "--requests: the list is empty"),
        ];
        for (list, expected) in cases {
            let error = listed("--requests f", list).expect_err(list);
            assert!(error.message.starts_with(expected), "{list}: {}", error.message);
        }
    }

    #[test]
    fn every_name_that_a_flag_offers_has_a_value() {
        let flags = [
            ("--pick", &["mru", "lru", "first_fit", "last_slot", "random"][..]),
            ("--race", &["bound", "race"]),
            ("-q 1 --arrival", &["constant", "poisson", "burst"]),
            ("--io", &["auto", "uring", "mio"]),
            ("--tls", &["1.2", "1.3"]),
        ];
        for (flag, names) in flags {
            for name in names {
                plan(&format!("{flag} {name} {URL}")).unwrap_or_else(|e| panic!("{flag} {name}: {e:?}"));
            }
        }
    }
}
