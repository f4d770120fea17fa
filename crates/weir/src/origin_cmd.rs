//! `weir origin`: flags to an `OriginConfig`, a line for each place where it listens, and its counters at the end.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use weir_model::plan::Io;
use weir_model::units::{Nanos, format_count};
use weir_net::{Backend, Endpoint};
use weir_origin::{Fault, Latency, Origin, OriginConfig, OriginError, OriginTls, Stats};

use crate::cli::{Format, OriginArgs};
use crate::error::Stop;
use crate::run::random_seed;
use crate::{host, output, signals};

/// Where it listens if nothing is said.
const DEFAULT_HTTP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);

pub fn run(args: &OriginArgs) -> Result<ExitCode, Stop> {
    let config = config_from(args)?;
    host::raise_files_limit();
    let mut origin = Origin::start(&config)?;
    output::print(&ready(args, &origin))?;

    let stopper = origin.stopper();
    signals::on_stop(move || stopper.stop())?;
    if args.with_parent {
        let stopper = origin.stopper();
        stop_with_parent(move || stopper.stop());
    }
    origin.wait()?;
    output::print(&counters(args.format, &origin.stats()))?;
    Ok(ExitCode::SUCCESS)
}

fn config_from(args: &OriginArgs) -> Result<OriginConfig, Stop> {
    refuse_contradictions(args)?;
    let mut http: Vec<Endpoint> = args.http.iter().copied().map(Endpoint::Tcp).collect();
    http.extend(args.unix.clone().map(Endpoint::Unix));
    if http.is_empty() && args.https.is_empty() {
        http.push(Endpoint::Tcp(DEFAULT_HTTP));
    }
    // Messages begin with the flag's name.
    let usage = |e: OriginError| Stop::usage(format!("--{}", e.message), e.hint);
    let faults: Result<Vec<Fault>, Stop> =
        args.faults.iter().map(|fault| Fault::parse(fault).map_err(usage)).collect();
    Ok(OriginConfig {
        http,
        https: args.https.iter().copied().map(Endpoint::Tcp).collect(),
        tls: OriginTls {
            files: args.cert.clone().zip(args.key.clone()),
            ca_out: args.ca_out.clone(),
            client_ca: args.client_ca.clone(),
            ..OriginTls::default()
        },
        threads: args.threads,
        backend: backend(args.io),
        seed: args.seed.unwrap_or_else(random_seed),
        latency: Latency::parse(&args.latency).map_err(usage)?,
        bytes: args.bytes,
        status: args.status,
        concurrency: args.concurrency,
        keepalive_timeout: args.keepalive_timeout.map(duration),
        keepalive_requests: args.keepalive_requests,
        announce_keepalive: args.announce_keepalive,
        close: args.close,
        accept_delay: args.accept_delay.map(duration),
        faults: faults?,
        ..OriginConfig::default()
    })
}

fn refuse_contradictions(args: &OriginArgs) -> Result<(), Stop> {
    let no_limits = args.keepalive_timeout.is_none() && args.keepalive_requests.is_none();
    let cases = [
        (
            args.close && args.keepalive_requests.is_some(),
            "`--close` contradicts `--keepalive-requests`",
            "--close ends each connection after one answer: give one of them",
        ),
        (
            args.close && args.keepalive_timeout.is_some(),
            "`--close` contradicts `--keepalive-timeout`",
            "--close ends each connection after one answer: give one of them",
        ),
        (
            args.ca_out.is_some() && args.cert.is_some(),
            "`--ca-out` contradicts `--cert`",
            "an authority is only made when no certificate is given",
        ),
        (
            args.announce_keepalive && no_limits,
            "`--announce-keepalive` has nothing to announce",
            "give --keepalive-timeout or --keepalive-requests too",
        ),
        (
            args.https.is_empty()
                && (args.ca_out.is_some() || args.cert.is_some() || args.client_ca.is_some()),
            "`--ca-out`, `--cert` and `--client-ca` need `--https`",
            "give --https 127.0.0.1:8443 too",
        ),
    ];
    match cases.into_iter().find(|(wrong, _, _)| *wrong) {
        Some((_, message, hint)) => Err(Stop::usage(message, hint)),
        None => Ok(()),
    }
}

fn backend(io: Io) -> Option<Backend> {
    match io {
        Io::Auto => None,
        Io::Uring => Some(Backend::Uring),
        Io::Mio => Some(Backend::Mio),
    }
}

fn duration(span: Nanos) -> Duration {
    Duration::from_nanos(span.0)
}

/// One line a listener, or one JSON object; whoever starts an origin waits for it.
fn ready(args: &OriginArgs, origin: &Origin) -> String {
    let urls = |scheme: &str, addrs: &[SocketAddr]| -> Vec<String> {
        addrs.iter().map(|addr| format!("{scheme}://{addr}")).collect()
    };
    let http = urls("http", origin.http_addrs());
    let https = urls("https", origin.https_addrs());
    match args.format {
        Format::Json => {
            let event = json!({
                "event": "ready",
                "http": http,
                "https": https,
                "unix": args.unix,
                "ca": args.ca_out,
                "pid": std::process::id(),
            });
            format!("{event}\n")
        }
        Format::Text => {
            let mut lines: Vec<String> =
                http.iter().chain(&https).map(|url| format!("listening on {url}\n")).collect();
            lines.extend(args.unix.iter().map(|path| format!("listening on {}\n", path.display())));
            lines.extend(args.ca_out.iter().map(|path| format!("clients can trust {}\n", path.display())));
            lines.concat()
        }
    }
}

fn counters(format: Format, stats: &Stats) -> String {
    if format == Format::Json {
        return format!("{}\n", json!({ "event": "done", "stats": stats }));
    }
    let requests = format_count(stats.requests);
    let mut out =
        format!("{requests} requests on {} connections\n", format_count(stats.connections.accepted));
    let tls = stats.tls_handshakes;
    if tls.full + tls.resumed > 0 {
        out += &format!(
            "{} full and {} resumed TLS handshakes\n",
            format_count(tls.full),
            format_count(tls.resumed)
        );
    }
    if stats.queue.peak > 0 {
        out += &format!("at most {} requests waited in the queue\n", format_count(stats.queue.peak));
    }
    for (status, n) in &stats.responses {
        out += &format!("  [{status}]\t{n} responses\n");
    }
    for (fault, n) in &stats.faults {
        out += &format!("  {fault}\t{n} times\n");
    }
    out
}

/// Standard input ends when whoever started this process is gone, however it went.
fn stop_with_parent(stop: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        stop();
    });
}
