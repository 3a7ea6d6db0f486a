"""Results as JSON, as tables on stdout and, with `--write`, in README.md between its markers."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benchmarks.options import Options

HERE = Path(__file__).parent
BEGIN, END = "<!-- results: written by `python -m benchmarks --write` -->", "<!-- end of results -->"


def begin(options: Options) -> dict[str, Any]:
    return {"when": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "machine": machine(), "options": asdict(options)}


def machine() -> dict[str, Any]:
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return {
        "cpu": model,
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": psutil.getloadavg()[0],
    }


def show(part: str, found: dict[str, Any]) -> None:
    print("\n".join(TABLES[part](found)) + "\n")


def throughput(found: dict[str, Any]) -> list[str]:
    head = ["", "contender", "events/s", "first to last", "from start", "first score", "a / it", "goal"]
    rows = []
    for letter, one in found["contenders"].items():
        ratio, goal = found["ratios"].get(letter), found["goals"].get(letter)
        spread = sorted(r["rate"] for r in one["rounds"])
        rows.append(
            [
                letter,
                found["names"][letter],
                f"{one['rate']:,.0f} ({spread[0]:,.0f}–{spread[-1]:,.0f})",
                f"{one['rate_first_to_last']:,.0f}",
                f"{one['rate_from_start']:,.0f}",
                f"{one['first_score_seconds']:.1f} s",
                f"{ratio:.2f}" if ratio else "",
                f"{goal:g}" if goal else "",
            ]
        )
    cpu = [
        [letter, *(f"{one['cpu_us'][name]:.1f}" for name in ("worker", "redis", "kafka", "sink"))]
        for letter, one in found["contenders"].items()
    ]
    limit = found["sink_ceiling_scores_per_second"]
    return [
        *table(head, rows),
        "",
        f"Medians of {found['rounds']} rounds (lowest and highest in brackets). Alone, the sink takes {limit:,.0f} scores a "
        "second. Microseconds of CPU an event costs:",
        "",
        *table(["", "worker", "Redis", "Kafka", "sink"], cpu),
    ]


def profile(found: dict[str, Any]) -> list[str]:
    rows = [[stage, f"{us:.2f}", f"{share:.1%}"] for stage, us, share in found["stages"]]
    rows.append(["**all**", f"{sum(us for _, us, _ in found['stages']):.2f}", ""])
    busy = ", ".join(f"{name} {share:.0%}" for name, share in found["busy"].items() if share >= 0.005)
    return [
        *table(["stage", "µs an event", "share"], rows),
        "",
        f"{found['events_per_second_under_the_sampler']:,.0f} events/s under the sampler. Threads busy: {busy}. "
        f"Garbage collection: {found['gc_share']:.1%} of the time, inside the stages.",
        "",
        *table(["function", "µs an event"], [[f"`{name}`", f"{us:.2f}"] for name, us in found["functions"][:15]]),
    ]


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


TABLES = {"throughput": throughput, "profile": profile}


def save(results: dict[str, Any], *, write: bool) -> None:
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
