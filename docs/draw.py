#!/usr/bin/env python3
"""Draws the README's picture from the records that `make demo` leaves: where the mean response time of each run went.

usage: docs/draw.py weir-demo > docs/demo.svg
"""

import json
import sys
from pathlib import Path

RUNS = [("pool-100", "400 callers, 100 connections"), ("pool-400", "400 callers, 400 connections"),
        ("per-request", "400 callers, a new connection each time")]
COLOURS = {"wait": "#d1495b", "connect": "#edae49", "server": "#30638e", "other": "#9aa5b1"}
WIDTH, BAR_LEFT, BAR_WIDTH, ROW, TOP = 760, 24, 712, 66, 64


def phases_ms(record):
    """Mean of each drawn phase; what is too small for a colour of its own is `other`."""
    means = {name: dist["mean"] for name, dist in record["phases"].items()}
    drawn = {name: means.pop(name) for name in ("wait", "connect", "server")}
    return {**drawn, "other": sum(means.values())}


def text(x, y, words, size=14, weight="400", anchor="start", fill="#1f2933"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
            f'fill="{fill}">{words}</text>')


def row(record, title, y, px_per_ms):
    totals = record["totals"]
    out = [text(BAR_LEFT, y, title, weight="600"),
           text(BAR_LEFT + BAR_WIDTH, y, f'{totals["rate"]:,.0f} requests/s', weight="600", anchor="end")]
    x = BAR_LEFT
    for name, ms in phases_ms(record).items():
        width = ms * px_per_ms
        out.append(f'<rect x="{x:.1f}" y="{y + 9}" width="{width:.1f}" height="26" fill="{COLOURS[name]}"/>')
        if width > 60:
            out.append(text(x + width / 2, y + 27, f"{name} {ms:.0f} ms", 13, "600", "middle", "#ffffff"))
        x += width
    return out


def main(folder):
    records = [(json.loads((Path(folder) / f"{name}.json").read_text()), title) for name, title in RUNS]
    longest = max(sum(phases_ms(record).values()) for record, _ in records)
    height = TOP + ROW * len(records)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
           f'height="{height}" font-family="ui-sans-serif, system-ui, Helvetica, Arial, sans-serif">',
           f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff" stroke="#d5dbe1"/>',
           text(BAR_LEFT, 32, "Where the mean response time went", 17, "700")]
    x = WIDTH - 24
    for name in reversed(COLOURS):
        x -= 9 * len(name) + 26
        out += [f'<rect x="{x}" y="21" width="12" height="12" fill="{COLOURS[name]}"/>', text(x + 17, 32, name, 13)]
    for i, (record, title) in enumerate(records):
        out += row(record, title, TOP + 14 + ROW * i, BAR_WIDTH / longest)
    out += ["</svg>"]
    print("\n".join(out))


if __name__ == "__main__":
    main(sys.argv[1])
