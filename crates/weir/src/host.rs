//! The machine that offers the load, as the record keeps it, and its limits. Reads /proc; names no machine and no user.

use weir_model::plan::{Pace, Plan};
use weir_model::record::Host;
use weir_model::units::format_count;

use crate::error::Stop;

/// Descriptors beside connections: standard streams, the loop's own, files, name resolution.
const FILES_BESIDE_CONNS: u64 = 32;

pub fn facts(io: &str) -> Host {
    Host {
        name: String::new(),
        os: os_name().unwrap_or_else(|| std::env::consts::OS.to_owned()),
        kernel: read("/proc/sys/kernel/osrelease"),
        arch: std::env::consts::ARCH.to_owned(),
        cpu: keyed(&read("/proc/cpuinfo"), "model name", ':').unwrap_or_default(),
        cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        memory_bytes: memory_bytes(),
        files_max: rlimit::Resource::NOFILE.get_soft().unwrap_or(0),
        io: io.to_owned(),
        weir: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Raises the limit on open files as far as this user may. A refusal leaves it, and `check_files` says if it is too low.
pub fn raise_files_limit() -> u64 {
    rlimit::increase_nofile_limit(u64::MAX).unwrap_or(0)
}

/// Refuses a run that cannot have the connections it is told to open.
pub fn check_files(plan: &Plan, files_max: u64) -> Result<(), Stop> {
    let Some(conns) = conns_most(plan).filter(|conns| conns + FILES_BESIDE_CONNS > files_max) else {
        return Ok(());
    };
    let needed = conns + FILES_BESIDE_CONNS;
    Err(Stop::could_not_run(
        format!("{} connections need more open files than the limit of {files_max}", format_count(conns)),
        format!("raise it (ulimit -n {needed}, as root or in limits.conf), or bound the pool (--pool)"),
    ))
}

/// Refuses source addresses that this machine does not have: a dial from one fails like one without a free port.
pub fn check_local_addrs(plan: &Plan) -> Result<(), Stop> {
    for &addr in &plan.net.local_addrs {
        std::net::UdpSocket::bind((addr, 0)).map_err(|e| {
            Stop::could_not_run(
                format!("--local-addr {addr}: {e}"),
                "`ip address` lists this machine's addresses; all of 127.0.0.0/8 are its own",
            )
        })?;
    }
    Ok(())
}

/// How many connections may be open at once, where flags say so.
fn conns_most(plan: &Plan) -> Option<u64> {
    let pools = plan.pool.max_conns.map(|n| u64::from(n) * u64::from(plan.instances));
    let workers = match plan.pace {
        Pace::Closed { workers } => Some(u64::from(workers)),
        Pace::Open { .. } => None,
    };
    match (pools, workers) {
        (Some(pools), Some(workers)) => Some(pools.min(workers)),
        (pools, workers) => pools.or(workers),
    }
}

fn os_name() -> Option<String> {
    keyed(&read("/etc/os-release"), "PRETTY_NAME", '=').map(|name| name.trim_matches('"').to_owned())
}

fn memory_bytes() -> u64 {
    let total = keyed(&read("/proc/meminfo"), "MemTotal", ':').unwrap_or_default();
    total.trim_end_matches(" kB").parse::<u64>().map_or(0, |kib| kib * 1024)
}

fn keyed(text: &str, key: &str, separator: char) -> Option<String> {
    let value = |line: &str| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value)
}

/// Empty where the file is not there.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_pool_beyond_the_files_limit_is_refused_in_words() {
        let mut plan = fixture::plan();
        plan.pace = Pace::Closed { workers: 400 };
        plan.pool.max_conns = Some(300);
        assert!(check_files(&plan, 332).is_ok());
        let stop = check_files(&plan, 331).unwrap_err();
        assert_eq!(stop.message, "300 connections need more open files than the limit of 331");
        assert!(stop.hint.contains("ulimit -n 332"), "{}", stop.hint);
    }

    #[test]
    fn an_unbounded_pool_needs_a_connection_per_worker() {
        let mut plan = fixture::plan();
        plan.pool.max_conns = None;
        plan.pace = Pace::Closed { workers: 2000 };
        assert!(check_files(&plan, 1024).is_err());
    }
}
