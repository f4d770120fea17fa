#!/usr/bin/env python3
"""Weir against its peers on one machine, in one run: `make bench`.

Load runs on one CPU, servers on another. What is compared is measured in interleaved pairs (A B A B …), and the figure
is the median of the pairs' ratios, so that a slow minute of the machine hits both. The table is printed and, but for a
`--quick` run, kept with every single measurement under bench/results.

    bench/run.py [--weir PATH] [--quick] [--only NAME]… [--keep DIR|none]

Exit status: 0 if every bar was met, 1 if one was missed or could not be measured, 2 for bad usage.
"""

import argparse
import datetime
import http.client
import json
import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Callable, Optional

import peers
import rig

CONNECTIONS = 64
CONNECTIONS_MANY = 10_000
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Settings:
    weir: str
    seconds: int
    pairs: int
    server_cpu: int
    load_cpu: int

    def program(self, tool):
        if tool.program != "weir":
            return rig.find(tool.program)
        if not os.access(self.weir, os.X_OK):
            raise rig.NotMeasured("weir: not built")
        return self.weir


@dataclass(frozen=True)
class Bar:
    """`value` must be at most, or at least, `limit`."""

    sign: str
    limit: float

    def met_by(self, value):
        return value <= self.limit if self.sign == "<=" else value >= self.limit


@dataclass(frozen=True)
class Row:
    name: str
    what: str
    unit: str
    # None: for information only.
    bar: Optional[Bar]
    # Settings -> Figure
    measure: Callable


@dataclass
class Figure:
    value: float
    # What stands behind the value, in words.
    note: str
    # Every measurement, for the kept file.
    raw: dict = field(default_factory=dict)


@dataclass
class Measured:
    row: Row
    figure: Optional[Figure]
    # "pass", "missed", "-" without a bar, or why there is no figure.
    verdict: str


# What is measured.


def client_ratio(ours, theirs, scheme="http"):
    """CPU time per request of one load generator over that of another, against the same nginx."""

    def measure(settings):
        tools = {name: peers.TOOLS[name] for name in (ours, theirs)}
        programs = {name: settings.program(tool) for name, tool in tools.items()}
        costs = {name: [] for name in tools}
        with rig.nginx(settings.server_cpu) as nginx:
            url = nginx.http if scheme == "http" else nginx.https
            for _ in range(settings.pairs):
                for name, tool in tools.items():
                    cost = peers.measure(
                        tool, programs[name], url, CONNECTIONS, settings.seconds, settings.load_cpu)
                    costs[name].append(cost)
                    progress(f"{name} {cost.cpu_us_per_request:.2f} us")
        per_request = {name: [cost.cpu_us_per_request for cost in all] for name, all in costs.items()}
        return Figure(
            median_ratio(per_request[ours], per_request[theirs]),
            ", ".join(f"{name} {median(all):.2f} us" for name, all in per_request.items()),
            {name: [vars(cost) for cost in all] for name, all in costs.items()},
        )

    return measure


def origin_ratio(settings):
    """Requests per CPU second of the origin over those of nginx, both under wrk."""
    wrk = peers.TOOLS["wrk"]
    program, weir = settings.program(wrk), settings.program(peers.TOOLS["weir-uring"])
    per_s = {"weir origin": [], "nginx": []}
    with rig.origin(weir, settings.server_cpu, "--bytes", "12") as ours, rig.nginx(settings.server_cpu) as theirs:
        servers = {"weir origin": ours, "nginx": theirs}
        for _ in range(settings.pairs):
            for name, server in servers.items():
                before = server.cpu_s()
                cost = peers.measure(
                    wrk, program, server.http, CONNECTIONS, settings.seconds, settings.load_cpu)
                per_s[name].append(cost.requests / (server.cpu_s() - before))
                progress(f"{name} {per_s[name][-1]:.0f} requests per CPU second")
    return Figure(
        median_ratio(per_s["weir origin"], per_s["nginx"]),
        ", ".join(f"{name} {median(all) / 1e3:.1f} k/s" for name, all in per_s.items()),
        {"requests_per_cpu_s": per_s},
    )


def memory_per_connection(settings):
    """Resident memory with so many open connections, less that with one, per connection.

    The origin answers after two seconds, so that all connections are open, and busy, at once.
    """
    weir = settings.program(peers.TOOLS["weir-uring"])
    seconds = 10

    def resident(url, connections):
        seen = []

        def watch(pid, elapsed_s):
            # When all are open and have been used, and before the report is made.
            if 0.6 * seconds < elapsed_s < 0.9 * seconds:
                seen.append(rig.resident_bytes(pid))

        argv = [weir, "run", "--io", "uring", "-c", str(connections), "-z", f"{seconds}s",
                "--timeout", "30s", "--format", "json", "--quiet", url]
        ended = rig.run(argv, settings.load_cpu, limit_s=90, ok=(0, 4), watch=watch)
        totals = json.loads(ended.stdout)["totals"]
        if totals["peak_conns"] != connections or totals["errors"]:
            raise rig.NotMeasured(
                f"{totals['peak_conns']} of {connections} connections were open, {totals['errors']} errors")
        return median(seen)

    with rig.origin(weir, settings.server_cpu, "--latency", "2s") as origin:
        one = resident(origin.http, 1)
        many = resident(origin.http, CONNECTIONS_MANY)
    return Figure(
        (many - one) / (CONNECTIONS_MANY - 1) / 1024,
        f"{one / 1e6:.1f} MB with 1, {many / 1e6:.1f} MB with {CONNECTIONS_MANY}",
        {"resident_bytes_one": one, "resident_bytes_many": many},
    )


def paced_runs(settings):
    """At 2,000 requests/s against 5 ms: `(report, median of what the origin says it took)` of each run."""
    weir = settings.program(peers.TOOLS["weir-uring"])
    with rig.origin(weir, settings.server_cpu, "--latency", "5ms") as origin:
        argv = [weir, "run", "--io", "uring", "-q", "2000", "-c", str(CONNECTIONS), "-z", f"{settings.seconds}s",
                "--format", "json", "--quiet", origin.http]
        for _ in range(min(3, settings.pairs)):
            timings = rig.Timings(origin.http)
            ended = rig.run(argv, settings.load_cpu, limit_s=settings.seconds + 30, watch=lambda *_: timings.ask())
            yield json.loads(ended.stdout), median(timings.dur_ms)


def pacing_lag(settings):
    """How late the generator itself is, at worst but for one request in a hundred."""
    lags_us = [report["phases"]["lag"]["p99"] * 1e3 for report, _ in paced_runs(settings)]
    return Figure(median(lags_us), f"runs: {', '.join(f'{lag:.0f}' for lag in lags_us)}", {"lag_p99_us": lags_us})


def pacing_server(settings):
    """How far the `server` phase is from what the origin says it took."""
    runs = [(report["phases"]["server"]["p50"], truth) for report, truth in paced_runs(settings)]
    return Figure(
        median(abs(server - truth) for server, truth in runs),
        "runs: " + ", ".join(f"{server:.3f} for {truth:.3f}" for server, truth in runs),
        {"server_p50_and_truth_ms": runs},
    )


ROWS = [
    Row("h1-uring", "CPU per request, weir (io_uring) / wrk", "x", Bar("<=", 0.85), client_ratio("weir-uring", "wrk")),
    Row("h1-mio", "CPU per request, weir (mio) / wrk", "x", Bar("<=", 1.05), client_ratio("weir-mio", "wrk")),
    Row("tls", "CPU per request, weir (io_uring) / wrk, TLS", "x", Bar("<=", 1.0),
        client_ratio("weir-uring", "wrk", "https")),
    Row("origin", "requests per CPU second, weir origin / nginx", "x", Bar(">=", 1.0), origin_ratio),
    Row("memory", "resident memory per open connection", "KiB", Bar("<=", 8.0), memory_per_connection),
    Row("pacing-lag", "lag p99 at 2,000 requests/s", "us", Bar("<=", 100.0), pacing_lag),
    Row("pacing-server", "server p50, off the origin's own timing of 5 ms", "ms", Bar("<=", 0.15), pacing_server),
    Row("h2load", "CPU per request, weir (io_uring) / h2load", "x", None, client_ratio("weir-uring", "h2load")),
    Row("oha", "CPU per request, weir (io_uring) / oha", "x", None, client_ratio("weir-uring", "oha")),
    Row("hey", "CPU per request, weir (io_uring) / hey", "x", None, client_ratio("weir-uring", "hey")),
]


def median_ratio(ours, theirs):
    return median(a / b for a, b in zip(ours, theirs, strict=True))


# How it is run, shown and kept.


def judge(row, settings):
    progress(f"{row.name}: {row.what}")
    try:
        figure = row.measure(settings)
    except rig.NotMeasured as why:
        return Measured(row, None, f"not measured: {why}")
    except (KeyError, TypeError, ValueError) as why:
        return Measured(row, None, f"not measured: a report without what is expected: {why!r}")
    except (OSError, http.client.HTTPException) as why:
        return Measured(row, None, f"not measured: {why!r}")
    if row.bar is None:
        return Measured(row, figure, "-")
    return Measured(row, figure, "pass" if row.bar.met_by(figure.value) else "missed")


def table(measured):
    lines = [f"{'name':<14} {'what':<49} {'value':>10} {'bar':>10}  verdict"]
    for one in measured:
        bar = f"{one.row.bar.sign} {one.row.bar.limit:g}" if one.row.bar else ""
        value = f"{one.figure.value:.3g} {one.row.unit}" if one.figure else ""
        note = f"  ({one.figure.note})" if one.figure else ""
        lines.append(f"{one.row.name:<14} {one.row.what:<49} {value:>10} {bar:>10}  {one.verdict}{note}")
    return "\n".join(lines)


def machine(settings):
    cpu = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    memory = re.search(r"MemTotal:\s*(\d+) kB", Path("/proc/meminfo").read_text())
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "cpus": os.cpu_count(),
        "memory_gb": round(int(memory[1]) / 1e6, 1),
        "kernel": platform.release(),
        "commit": output_line(["git", "-C", str(ROOT), "describe", "--always", "--dirty"]),
        "busy_before": busy_fraction(),
        "versions": {name: version(settings, tool) for name, tool in versioned()},
    }


def versioned():
    tools = {tool.program: tool for tool in peers.TOOLS.values()}
    return [*tools.items(), ("nginx", peers.Tool("nginx", None, None, version=("-v",)))]


def version(settings, tool):
    try:
        program = settings.program(tool)
    except rig.NotMeasured:
        return "not there"
    return output_line([program, *tool.version]) if tool.version else "as in bench/setup.sh"


def output_line(argv):
    """The first line that a program prints, wherever it prints it."""
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return (done.stdout.strip().splitlines() or [""])[0]


def busy_fraction():
    """Share of the machine that something else used just now, measured over a second."""

    def times():
        user, nice, system, idle, iowait, *rest = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
        return idle + iowait, user + nice + system + idle + iowait + sum(rest)

    idle_before, all_before = times()
    time.sleep(1)
    idle, all = times()
    return round(1 - (idle - idle_before) / (all - all_before), 3)


def heading(facts, settings, name):
    lines = [
        f"Weir bench {name}, commit {facts['commit']}",
        f"{facts['cpus']} CPUs {facts['cpu']}, {facts['memory_gb']} GB, Linux {facts['kernel']}; "
        f"servers on CPU {settings.server_cpu}, load on CPU {settings.load_cpu}",
        f"{settings.pairs} pairs of {settings.seconds} s, {CONNECTIONS} connections, keep-alive, one thread",
        "; ".join(f"{name}: {text}" for name, text in facts["versions"].items()),
    ]
    if facts["busy_before"] > 0.05:
        lines.append(f"NOISY: {facts['busy_before']:.0%} of the machine was busy with something else before the run")
    return "\n".join(lines)


def next_name(folder):
    """Today's date and the first number that is free."""
    today = datetime.date.today().isoformat()
    return next(name for n in range(1, 10_000) if not (folder / f"{(name := f'{today}-{n}')}.json").exists())


def keep(folder, name, text, facts, settings, measured):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.txt").write_text(text + "\n")
    rows = [
        {
            "name": one.row.name,
            "what": one.row.what,
            "unit": one.row.unit,
            "bar": vars(one.row.bar) if one.row.bar else None,
            "verdict": one.verdict,
            "value": one.figure.value if one.figure else None,
            "raw": one.figure.raw if one.figure else None,
        }
        for one in measured
    ]
    how = {"seconds": settings.seconds, "pairs": settings.pairs, "connections": CONNECTIONS}
    kept = {"schema": "weir.bench/1", "name": name, "machine": facts, "settings": how, "rows": rows}
    (folder / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")


def progress(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="bench/run.py", description=__doc__.split("\n")[0])
    parser.add_argument("--weir", default=str(ROOT / "target/release/weir"), help="the program to measure")
    parser.add_argument("--quick", action="store_true", help="one pair of 1 s: tries the bench, measures nothing")
    parser.add_argument("--only", action="append", choices=[row.name for row in ROWS], help="this row; repeatable")
    parser.add_argument("--keep", help="folder for the results, or none; bench/results, but none with --quick")
    args = parser.parse_args()
    args.keep = args.keep or ("none" if args.quick else str(ROOT / "bench/results"))
    return args


def main():
    args = arguments()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        sys.exit("bench: one CPU only; load and server need one each")
    seconds, pairs = (1, 1) if args.quick else (5, 5)
    settings = Settings(args.weir, seconds, pairs, server_cpu=cpus[0], load_cpu=cpus[1])
    # The bench itself keeps off the CPU of the load.
    os.sched_setaffinity(0, {settings.server_cpu})

    folder = None if args.keep == "none" else Path(args.keep)
    name = next_name(folder) if folder else datetime.date.today().isoformat()
    facts = machine(settings)
    measured = [judge(row, settings) for row in ROWS if not args.only or row.name in args.only]
    text = heading(facts, settings, name) + "\n\n" + table(measured)
    print(text)
    if folder:
        keep(folder, name, text, facts, settings, measured)
        progress(f"kept as {folder / name}.json and .txt")
    sys.exit(0 if all(one.row.bar is None or one.verdict == "pass" for one in measured) else 1)


if __name__ == "__main__":
    main()
