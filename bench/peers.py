"""How each load generator is told to do the same thing, and how many requests it says it completed.

One thread, keep-alive, as fast as it goes. A run with a single failed request is not a measurement.
"""

import json
import re
from dataclasses import dataclass
from typing import Callable

import rig


@dataclass(frozen=True)
class Tool:
    program: str
    # (url, connections, seconds) -> arguments
    arguments: Callable
    # stdout -> completed requests
    completed: Callable
    version: tuple = ("--version",)
    ok: tuple = (0,)


@dataclass
class Cost:
    """What one run of a tool cost."""

    requests: int
    cpu_s: float
    wall_s: float

    @property
    def cpu_us_per_request(self):
        return self.cpu_s / self.requests * 1e6


def measure(tool, program, url, connections, seconds, cpu):
    argv = [program, *tool.arguments(url, connections, seconds)]
    ended = rig.run(argv, cpu, limit_s=seconds + 30, ok=tool.ok)
    requests = tool.completed(ended.stdout)
    if requests == 0:
        raise rig.NotMeasured(f"{tool.program}: no request completed")
    return Cost(requests, ended.cpu_s, ended.wall_s)


def number(pattern, text, program):
    match = re.search(pattern, text)
    if not match:
        raise rig.NotMeasured(f"{program}: its output has no `{pattern}`")
    return int(match[1])


def none_failed(failed, program):
    if failed:
        raise rig.NotMeasured(f"{program}: {failed} requests failed")


def wrk_completed(text):
    none_failed("some" if re.search("Socket errors|Non-2xx", text) else 0, "wrk")
    return number(r"(\d+) requests in", text, "wrk")


def h2load_completed(text):
    none_failed(number(r"(\d+) failed", text, "h2load"), "h2load")
    return number(r"(\d+) succeeded", text, "h2load")


def oha_completed(text):
    report = json.loads(text)
    # What was in flight when the time was up is reported as an error; the others complete it and do not count it.
    errors = {name: n for name, n in report["errorDistribution"].items() if "deadline" not in name}
    none_failed(sum(errors.values()), "oha")
    return report["statusCodeDistribution"]["200"]


def hey_completed(text):
    none_failed("some" if "Error distribution" in text else 0, "hey")
    return number(r"\[200\]\s+(\d+) responses", text, "hey")


def weir_completed(text):
    totals = json.loads(text)["totals"]
    none_failed(totals["errors"], "weir")
    return totals["ok"]


def weir(io):
    def arguments(url, connections, seconds):
        return ["run", "--io", io, "-c", str(connections), "-z", f"{seconds}s", "-k",
                "--format", "json", "--quiet", url]

    # 4 is a run that Weir itself calls invalid: here its CPU is full on purpose.
    return Tool("weir", arguments, weir_completed, ok=(0, 4))


TOOLS = {
    "weir-uring": weir("uring"),
    "weir-mio": weir("mio"),
    "wrk": Tool("wrk", lambda url, c, s: ["-t1", f"-c{c}", f"-d{s}s", url], wrk_completed, version=("-v",)),
    "h2load": Tool(
        "h2load",
        lambda url, c, s: ["--h1", "-t1", f"-c{c}", f"-D{s}", "--warm-up-time=0", url],
        h2load_completed,
    ),
    "oha": Tool(
        "oha",
        lambda url, c, s: ["--no-tui", "--insecure", "-c", str(c), "-z", f"{s}s", "--output-format", "json", url],
        oha_completed,
    ),
    # It has no flag for its version; bench/setup.sh fixes it.
    "hey": Tool("hey", lambda url, c, s: ["-cpus", "1", "-c", str(c), "-z", f"{s}s", url], hey_completed, version=()),
}
