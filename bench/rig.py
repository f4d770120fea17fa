"""Programs under measurement: started on a CPU of their own, watched through /proc and rusage, ended by their pid.

Knows nothing of rows, bars or ratios. Linux only, and only the standard library.
"""

import contextlib
import http.client
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

# Debian keeps servers in /usr/sbin, which is not in everybody's PATH.
SEARCH_PATH = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
NGINX_CONF = Path(__file__).with_name("nginx.conf")


class NotMeasured(Exception):
    """Why a row has no figure."""


@dataclass
class Ended:
    """A process that ran to its end. `cpu_s` is user and system time of all its threads."""

    stdout: str
    cpu_s: float
    wall_s: float


@dataclass
class Server:
    pid: int
    http: str
    https: str = ""

    def cpu_s(self):
        return sum(stat_cpu_s(pid) for pid in family(self.pid))


def find(program):
    path = shutil.which(program, path=SEARCH_PATH)
    if path is None:
        raise NotMeasured(f"{program}: not installed")
    return path


def run(argv, cpu, limit_s, ok=(0,), watch=None):
    """Runs to the end on one CPU. `watch(pid, elapsed_s)` is called ten times a second meanwhile."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        begun = time.monotonic()
        child = start(argv, cpu, out, err)
        killer = Timer(limit_s, child.kill)
        killer.start()
        try:
            status, usage = wait(child.pid, begun, watch)
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            killer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)  # wait4 has reaped it; Popen must not try again
        wall_s = time.monotonic() - begun
        out.seek(0)
        err.seek(0)
        if child.returncode == -signal.SIGKILL:
            raise NotMeasured(f"{Path(argv[0]).name}: was killed, at the latest after {limit_s} s")
        if child.returncode not in ok:
            lines = err.read().strip().splitlines() or ["it said nothing"]
            raise NotMeasured(f"{Path(argv[0]).name}: exit {child.returncode}: {lines[-1]}")
        return Ended(out.read(), usage.ru_utime + usage.ru_stime, wall_s)


def wait(pid, begun, watch):
    """`(status, rusage)` of the child, waited for asleep unless somebody wants to watch it."""
    while watch:
        gone, status, usage = os.wait4(pid, os.WNOHANG)
        if gone:
            return status, usage
        watch(pid, time.monotonic() - begun)
        time.sleep(0.1)
    _, status, usage = os.wait4(pid, 0)
    return status, usage


def start(argv, cpu, out, err):
    def before_exec():
        os.sched_setaffinity(0, {cpu})
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=before_exec)


@contextlib.contextmanager
def server(argv, cpu, http_port, https_port=None):
    """Starts a server and waits until it accepts; ends it by its pid."""
    with tempfile.TemporaryFile("w+") as log:
        child = start(argv, cpu, log, log)
        try:
            wait_until_accepting(child, http_port, log)
            https = f"https://127.0.0.1:{https_port}/" if https_port else ""
            yield Server(child.pid, f"http://127.0.0.1:{http_port}/", https)
        finally:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def wait_until_accepting(child, port, log, limit_s=10):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        if child.poll() is not None:
            break
        time.sleep(0.05)
    log.seek(0)
    lines = log.read().strip().splitlines() or ["it said nothing"]
    raise NotMeasured(f"{Path(child.args[0]).name}: did not start: {lines[-1]}")


@contextlib.contextmanager
def nginx(cpu):
    """One worker that answers 12 bytes, over HTTP and over TLS with a certificate made for the occasion."""
    program, openssl = find("nginx"), find("openssl")
    http_port, https_port = free_ports(2)
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        self_signed(openssl, folder)
        conf = NGINX_CONF.read_text()
        values = {
            "FOLDER": folder,
            "HTTP_PORT": str(http_port),
            "HTTPS_PORT": str(https_port),
            # Started by root, nginx would give its worker to a user that cannot enter the folder.
            "USER": "user root;" if os.geteuid() == 0 else "",
        }
        for name, value in values.items():
            conf = conf.replace(f"@{name}@", value)
        Path(folder, "nginx.conf").write_text(conf)
        argv = [program, "-p", folder, "-c", "nginx.conf", "-e", "stderr"]
        with server(argv, cpu, http_port, https_port) as running:
            yield running


def self_signed(openssl, folder):
    made = subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )
    if made.returncode != 0:
        raise NotMeasured(f"openssl: {made.stderr.strip()}")


@contextlib.contextmanager
def origin(weir, cpu, *flags):
    (port,) = free_ports(1)
    with server([weir, "origin", "--http", f"127.0.0.1:{port}", *flags], cpu, port) as running:
        yield running


def free_ports(count):
    """Ports that were free a moment ago: the servers here cannot be given a listening socket."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def family(pid):
    """The process and its descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int(stat_fields(entry.name)[1])
    found = [pid]
    for one in found:
        found.extend(child for child, parent in parents.items() if parent == one)
    return found


def stat_fields(pid):
    """Fields of /proc/PID/stat from the state on; the name before it may hold spaces."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def stat_cpu_s(pid):
    """User and system time of all threads, dead ones included. Its grain of 10 ms is 0.2 % of a run of 5 s."""
    fields = stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def resident_bytes(pid):
    total = 0
    for one in family(pid):
        with contextlib.suppress(OSError):
            match = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{one}/status").read_text(), re.MULTILINE)
            total += int(match[1]) * 1024 if match else 0
    return total


class Timings:
    """Asks a server now and then how long it took, by its `Server-Timing` header."""

    def __init__(self, url):
        self.connection = http.client.HTTPConnection(url.split("/")[2], timeout=5)
        self.dur_ms = []

    def ask(self):
        self.connection.request("GET", "/")
        response = self.connection.getresponse()
        response.read()
        match = re.search(r"\bdur=([0-9.]+)", response.getheader("Server-Timing", ""))
        if not match:
            raise NotMeasured("the origin sends no Server-Timing with a `dur`")
        self.dur_ms.append(float(match[1]))
