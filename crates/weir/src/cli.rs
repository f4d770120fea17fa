//! What people type: the subcommands and their flags. Reads single values; what they mean together is `plan_from`'s.
//!
//! Flags follow the hey and oha family. A bare number is seconds, `10k` is ten thousand, rates are totals.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::de::DeserializeOwned;
use weir_model::plan::{Arrival, Io, TlsVersion};
use weir_model::pool::{DialRace, IdlePick};
use weir_model::units::Nanos;
use weir_origin::{FaultKind, Latency};

use crate::values;

#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    about = "A laboratory for service-to-service HTTP: where the time of a request goes, and what a connection policy costs",
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send requests through a modelled connection pool, and show where their time went
    Run(Box<RunArgs>),
    /// Serve answers as told, badly too: the server for experiments
    Origin(Box<OriginArgs>),
    /// An origin, a pool that is too small, one that is right, and one connection per request
    Demo(DemoArgs),
    /// List the built-in connection policies, or show one with its sources
    Profiles(ProfilesArgs),
    /// Print the completion script of a shell
    Completions(CompletionsArgs),
}

#[derive(Clone, Debug, Args)]
#[command(after_help = RUN_EXAMPLES, allow_negative_numbers = true)]
pub struct RunArgs {
    /// Where to send; `{{counter}}`, `{{random}}`, `{{random:LO-HI}}` and `{{uuid}}` in path and query are filled in
    #[arg(value_name = "URL")]
    pub url: Option<String>,

    /// Workers: each sends its next request when its last one ended; with -q, the width of the default pool
    /// [default: 50]
    #[arg(
        short = 'c',
        long = "concurrency",
        visible_alias = "connections",
        value_name = "N",
        value_parser = values::count_u32,
        help_heading = "Load"
    )]
    pub workers: Option<u32>,
    /// Requests to send, exactly [default: 200, or no limit with -z]
    #[arg(short = 'n', long = "count", value_name = "N", value_parser = values::count, help_heading = "Load")]
    pub count: Option<u64>,
    /// How long to send; with -n, whichever comes first
    #[arg(short = 'z', long, value_name = "T", value_parser = values::span, help_heading = "Load")]
    pub duration: Option<Nanos>,
    /// Requests per second in total, sent by the clock whatever became of the earlier ones
    #[arg(
        short = 'q',
        long,
        visible_alias = "qps",
        value_name = "PER_S",
        value_parser = values::rate,
        help_heading = "Load"
    )]
    pub rate: Option<f64>,
    /// Rate that goes from FROM to TO within TIME and then stays, in place of -q
    #[arg(long, value_name = "FROM:TO:TIME", value_parser = values::ramp, help_heading = "Load")]
    pub ramp: Option<values::Ramp>,
    /// Gaps between requests, with -q or --ramp [default: constant]
    #[arg(
        long,
        value_name = "SHAPE",
        value_parser = named::<Arrival>(&["constant", "poisson", "burst"]),
        help_heading = "Load"
    )]
    pub arrival: Option<Arrival>,
    /// Send for this long first, and measure that apart
    #[arg(long, value_name = "T", value_parser = values::span, help_heading = "Load")]
    pub warmup: Option<Nanos>,
    /// Client instances: pools, each on a thread of its own, that share -c and -q
    #[arg(long, value_name = "N", value_parser = values::count_u32, default_value = "1", help_heading = "Load")]
    pub instances: u32,
    /// Longest time for a whole request
    #[arg(
        short = 't',
        long,
        value_name = "T",
        value_parser = values::span,
        default_value = "20s",
        help_heading = "Load"
    )]
    pub timeout: Nanos,

    /// Requests in flight at the end are always waited for
    #[arg(short = 'w', long = "wait-ongoing-requests-after-deadline", hide = true)]
    pub wait_ongoing: bool,

    /// Method of the request [default: GET]
    #[arg(short = 'm', long, value_name = "METHOD", help_heading = "Request")]
    pub method: Option<String>,
    /// Header, as `Name: value`; may be repeated, and may hold templates
    #[arg(
        short = 'H',
        long = "header",
        value_name = "NAME: VALUE",
        value_parser = values::header,
        help_heading = "Request"
    )]
    pub headers: Vec<(String, String)>,
    /// Body, which may hold templates; `@FILE` is the same as -D FILE
    #[arg(short = 'd', long = "data", value_name = "TEXT", help_heading = "Request")]
    pub data: Option<String>,
    /// Body from a file, sent as it is
    #[arg(
        short = 'D',
        long = "data-file",
        visible_alias = "body-file",
        value_name = "FILE",
        help_heading = "Request"
    )]
    pub data_file: Option<String>,
    /// Content-Type header
    #[arg(short = 'T', long, value_name = "TYPE", help_heading = "Request")]
    pub content_type: Option<String>,
    /// Accept header
    #[arg(short = 'A', long, value_name = "TYPES", help_heading = "Request")]
    pub accept: Option<String>,
    /// Basic authentication, as `USER:PASSWORD`
    #[arg(short = 'a', long, value_name = "USER:PASSWORD", help_heading = "Request")]
    pub basic_auth: Option<String>,
    /// Host header, when it is not the URL's host
    #[arg(long, value_name = "HOST", help_heading = "Request")]
    pub host: Option<String>,
    /// List to choose from, `-` for standard input: a line is `METHOD URL [weight=N]`, or a JSON object
    /// with `method`, `url`, `headers`, `body`, `weight`
    #[arg(long, visible_alias = "urls-from-file", value_name = "FILE", help_heading = "Request")]
    pub requests: Option<PathBuf>,

    /// Connection policy to start from: see `weir profiles`
    #[arg(long, value_name = "ID", help_heading = "Pool")]
    pub profile: Option<String>,
    /// Connections of a pool at most [default of the profile `fixed`: as many as -c]
    #[arg(long, value_name = "N", value_parser = values::count_u32, help_heading = "Pool")]
    pub pool: Option<u32>,
    /// Idle connections of a pool at most; more are closed
    #[arg(long, value_name = "N", value_parser = values::count_u32_or_zero, help_heading = "Pool")]
    pub max_idle: Option<u32>,
    /// Requests that may wait for a connection; more fail at once
    #[arg(long, value_name = "N", value_parser = values::count_u32_or_zero, help_heading = "Pool")]
    pub max_pending: Option<u32>,
    /// Longest wait for a connection
    #[arg(long, value_name = "T", value_parser = values::span, help_heading = "Pool")]
    pub acquire_timeout: Option<Nanos>,
    /// Longest dial: name, connect and TLS together
    #[arg(long, value_name = "T", value_parser = values::span, help_heading = "Pool")]
    pub connect_timeout: Option<Nanos>,
    /// Close a connection that was idle for so long
    #[arg(long, value_name = "T", value_parser = values::span, help_heading = "Pool")]
    pub idle_timeout: Option<Nanos>,
    /// Close a connection this old, after its request
    #[arg(long, value_name = "T", value_parser = values::span, help_heading = "Pool")]
    pub max_lifetime: Option<Nanos>,
    /// Close a connection after so many requests
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = "Pool")]
    pub requests_per_conn: Option<u64>,
    /// A new connection for each request
    #[arg(long, visible_alias = "disable-keepalive", help_heading = "Pool")]
    pub no_keepalive: bool,
    /// Which idle connection is taken
    #[arg(
        long,
        value_name = "ORDER",
        value_parser = named::<IdlePick>(&["mru", "lru", "first_fit", "last_slot", "random"]),
        help_heading = "Pool"
    )]
    pub pick: Option<IdlePick>,
    /// Whether a request waits for the dial it caused, or takes whichever connection comes first
    #[arg(
        long,
        value_name = "MODE",
        value_parser = named::<DialRace>(&["bound", "race"]),
        help_heading = "Pool"
    )]
    pub race: Option<DialRace>,
    /// Any other value of the policy, by its name in `weir profiles ID`, such as `order=lifo` or `dial=eager:10`
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::assignment, help_heading = "Pool")]
    pub pool_set: Vec<(String, String)>,

    /// Accept any certificate
    #[arg(short = 'k', long, help_heading = "Connection")]
    pub insecure: bool,
    /// Authorities to trust in place of the system's, PEM
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    pub cacert: Option<String>,
    /// Client certificate chain, PEM
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    pub cert: Option<String>,
    /// Key of the client certificate, PEM
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    pub key: Option<String>,
    /// The one version of TLS to offer
    #[arg(long, value_name = "VERSION", value_parser = tls_version(), help_heading = "Connection")]
    pub tls: Option<TlsVersion>,
    /// Lowest version of TLS to offer [default: 1.2]
    #[arg(long, value_name = "VERSION", value_parser = tls_version(), help_heading = "Connection")]
    pub tls_min: Option<TlsVersion>,
    /// Highest version of TLS to offer [default: 1.3]
    #[arg(long, value_name = "VERSION", value_parser = tls_version(), help_heading = "Connection")]
    pub tls_max: Option<TlsVersion>,
    /// A full TLS handshake for each connection
    #[arg(long, help_heading = "Connection")]
    pub no_session_resumption: bool,
    /// Connect to this host and port whatever the URL says (also as curl's HOST1:PORT1:HOST2:PORT2)
    #[arg(long, value_name = "HOST:PORT", value_parser = values::connect_to, help_heading = "Connection")]
    pub connect_to: Option<values::ConnectTo>,
    /// Connect to this Unix socket
    #[arg(long, value_name = "PATH", help_heading = "Connection")]
    pub unix_socket: Option<String>,
    /// Source addresses, taken in turn: a list with commas, and ranges such as 127.0.0.2-127.0.0.9
    #[arg(long, value_name = "ADDRS", value_parser = values::local_addrs, help_heading = "Connection")]
    pub local_addr: Option<values::Addrs>,
    /// HTTP/1.1, which is the default
    #[arg(long = "http1.1", help_heading = "Connection")]
    pub http1_1: bool,
    /// How sockets are driven
    #[arg(
        long,
        value_name = "IO",
        value_parser = named::<Io>(&["auto", "uring", "mio"]),
        default_value = "auto",
        help_heading = "Connection"
    )]
    pub io: Io,

    /// A condition on the result, such as `p(99)<200ms`, `wait.p(99)<5ms`, `errors<0.1%`; may be repeated
    #[arg(long = "gate", value_name = "EXPR", help_heading = "Result")]
    pub gates: Vec<String>,
    /// File for the whole result as JSON, kept up to date while the run lasts
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Result")]
    pub output: Option<PathBuf>,
    /// File for every request: its moments, phases and outcome, as CSV
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub samples: Option<PathBuf>,
    /// What to print at the end
    #[arg(
        long,
        visible_alias = "output-format",
        value_name = "FORMAT",
        value_enum,
        default_value = "text",
        help_heading = "Result"
    )]
    pub format: Format,
    /// No progress
    #[arg(long, visible_alias = "no-tui", help_heading = "Result")]
    pub quiet: bool,
    /// No colours; the variable NO_COLOR does the same
    #[arg(long, help_heading = "Result")]
    pub no_color: bool,
    /// Makes everything random repeat itself
    #[arg(long, value_name = "N", value_parser = values::whole, help_heading = "Result")]
    pub seed: Option<u64>,
}

const RUN_EXAMPLES: &str = "\
Examples:
  weir run -c 300 -n 50k http://127.0.0.1:8080/
  weir run -q 2000 --arrival poisson -z 30s --profile go-nethttp http://127.0.0.1:8080/
  weir run -c 400 --pool 100 -z 10s --gate 'wait.p(99)<5ms' -o run.json http://127.0.0.1:8080/

Exit status: 0 fine, 1 could not run or no request succeeded, 2 bad usage, 3 a gate failed,
4 the run is INVALID, 130 interrupted.";

#[derive(Clone, Debug, Args)]
#[command(after_help = ORIGIN_EXAMPLES, allow_negative_numbers = true)]
pub struct OriginArgs {
    /// Address for HTTP, may be repeated; port 0 lets the system choose
    /// [default: 127.0.0.1:8080, unless --https or --unix is given]
    #[arg(long, value_name = "ADDR", value_parser = values::listen_addr, help_heading = "Listeners")]
    pub http: Vec<std::net::SocketAddr>,
    /// Address for HTTPS, may be repeated
    #[arg(long, value_name = "ADDR", value_parser = values::listen_addr, help_heading = "Listeners")]
    pub https: Vec<std::net::SocketAddr>,
    /// Path of a Unix socket for HTTP
    #[arg(long, value_name = "PATH", help_heading = "Listeners")]
    pub unix: Option<PathBuf>,
    /// File to write the authority to that clients can trust
    #[arg(long, value_name = "FILE", help_heading = "Listeners")]
    pub ca_out: Option<PathBuf>,
    /// Certificate chain in place of a self-signed one, PEM
    #[arg(long, value_name = "FILE", requires = "key", help_heading = "Listeners")]
    pub cert: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = "Listeners")]
    pub key: Option<PathBuf>,
    /// Authorities whose client certificates are required, PEM
    #[arg(long, value_name = "FILE", help_heading = "Listeners")]
    pub client_ca: Option<PathBuf>,

    /// How long an answer takes
    #[arg(
        long,
        value_name = "DIST",
        default_value = "0",
        help = format!("How long an answer takes: {}", Latency::GRAMMAR),
        help_heading = "Answers"
    )]
    pub latency: String,
    /// Size of the body in bytes
    #[arg(long, value_name = "N", value_parser = values::size, default_value = "12", help_heading = "Answers")]
    pub bytes: u64,
    /// Status of the answer
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(200..=599),
        default_value = "200",
        help_heading = "Answers"
    )]
    pub status: u16,
    /// Requests worked on at once, the others wait in a queue, as for Tomcat's 200 threads
    #[arg(long, value_name = "N", value_parser = values::count_u32, help_heading = "Answers")]
    pub concurrency: Option<u32>,

    /// Close a connection that was idle for so long
    #[arg(long, value_name = "T", value_parser = values::span, help_heading = "Connections")]
    pub keepalive_timeout: Option<Nanos>,
    /// Close a connection after so many requests
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = "Connections")]
    pub keepalive_requests: Option<u64>,
    /// Say both limits in a Keep-Alive header
    #[arg(long, help_heading = "Connections")]
    pub announce_keepalive: bool,
    /// Leave a new connection alone for so long
    #[arg(long, value_name = "T", value_parser = values::span, help_heading = "Connections")]
    pub accept_delay: Option<Nanos>,
    /// Close after each answer, and say so
    #[arg(long, help_heading = "Connections")]
    pub close: bool,

    /// Misbehave at this rate
    #[arg(long = "fault", value_name = "KIND:RATE", help = fault_help(), help_heading = "Faults")]
    pub faults: Vec<String>,

    /// Threads, each with an event loop
    #[arg(long, value_name = "N", value_parser = values::count_u32, default_value = "1", help_heading = "Process")]
    pub threads: u32,
    /// How sockets are driven
    #[arg(
        long,
        value_name = "IO",
        value_parser = named::<Io>(&["auto", "uring", "mio"]),
        default_value = "auto",
        help_heading = "Process"
    )]
    pub io: Io,
    /// Makes everything random repeat itself
    #[arg(long, value_name = "N", value_parser = values::whole, help_heading = "Process")]
    pub seed: Option<u64>,
    /// Stop when standard input ends
    #[arg(long, hide = true)]
    pub with_parent: bool,
    /// How to say where it listens, and what it counted
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text", help_heading = "Process")]
    pub format: Format,
}

const ORIGIN_EXAMPLES: &str = "\
Examples:
  weir origin --latency 100ms
  weir origin --http 127.0.0.1:0 --https 127.0.0.1:0 --ca-out ca.pem --format json
  curl 'http://127.0.0.1:8080/?delay=20ms&bytes=2048&status=503'
  curl http://127.0.0.1:8080/_weir/stats";

#[derive(Clone, Debug, Args)]
pub struct DemoArgs {
    /// Where to keep the report
    #[arg(long, value_name = "DIR", default_value = "weir-demo")]
    pub dir: PathBuf,
    /// How long each run sends
    #[arg(short = 'z', long, value_name = "T", value_parser = values::span, default_value = "5s")]
    pub duration: Nanos,
    /// No progress
    #[arg(long)]
    pub quiet: bool,
    /// No colours; the variable NO_COLOR does the same
    #[arg(long)]
    pub no_color: bool,
}

#[derive(Clone, Debug, Args)]
pub struct ProfilesArgs {
    /// The one to show
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// How to print it
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub format: Format,
}

#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

fn fault_help() -> String {
    let kinds: Vec<&str> = FaultKind::all().map(FaultKind::name).collect();
    format!("Misbehave, such as `reset:5%`; may be repeated: {}", kinds.join(", "))
}

fn tls_version() -> impl TypedValueParser<Value = TlsVersion> {
    named::<TlsVersion>(&["1.2", "1.3"])
}

/// A value of the plan by its name in the JSON, so that both say the same.
fn named<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names)
        .try_map(|name| serde_json::from_value::<T>(serde_json::Value::String(name)))
}
