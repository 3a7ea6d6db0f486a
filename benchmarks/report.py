"""Results as JSON, as tables on stdout and, with `--write`, in README.md between its markers."""

from __future__ import annotations

import json
import platform
import subprocess
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import redis

from benchmarks.lab import Lab
from benchmarks.options import Options
from benchmarks.processes import ROOT
from benchmarks.tables import TABLES
from rampgate.local.services.jars import KAFKA

HERE = Path(__file__).parent
BEGIN, END = "<!-- results: written by `python -m benchmarks --write` -->", "<!-- end of results -->"


def begin(lab: Lab | None, options: Options) -> dict[str, Any]:
    return {"when": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "machine": machine(lab), "options": asdict(options)}


def machine(lab: Lab | None) -> dict[str, Any]:
    """Without services where there is no lab."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "cpu": model,
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **(services(lab) if lab is not None else {}),
        "commit": commit.stdout.strip() or "unknown",
        "load_before": round(psutil.getloadavg()[0], 2),
    }


def services(lab: Lab) -> dict[str, str]:
    with redis.Redis.from_url(lab.ours.url) as store:
        server = store.info("server")
    return {
        "kafka": KAFKA.coordinates[0].rsplit(":", 1)[1],
        "redis": f"Valkey {server['valkey_version']}" if "valkey_version" in server else server["redis_version"],
    }


def show(part: str, found: dict[str, Any]) -> None:
    print("\n".join(TABLES[part][1](found)) + "\n", flush=True)


def save(results: dict[str, Any], *, write: bool) -> None:
    """results.json keeps the parts that this run left out; each part says when it was measured."""
    file = HERE / "results.json"
    kept = json.loads(file.read_text()) if file.exists() else {}
    document = kept | results
    file.write_text(json.dumps(document, indent=1) + "\n")
    if write:
        readme = HERE / "README.md"
        head, rest = readme.read_text().split(BEGIN)
        tail = rest.split(END)[1]
        readme.write_text(f"{head}{BEGIN}\n\n{page(document)}\n{END}{tail}")


def page(document: dict[str, Any]) -> str:
    lines = []
    for part, (title, shown) in TABLES.items():
        if part in document:
            found = document[part]
            lines += [f"### {title}", "", *shown(found["found"]), "", stamp(found), ""]
    return "\n".join(lines)


def stamp(found: dict[str, Any]) -> str:
    on, options = found["machine"], found["options"]
    quick = "" if options["rounds"] >= 5 else " **A short run, to be repeated.**"
    used = f", Kafka {on['kafka']}, {on['redis']}" if "kafka" in on else ""
    return (
        f"*{found['when']}, commit {on['commit']}: {on['cores']} cores ({on['cpu']}), {on['memory_gib']} GiB, "
        f"{on['system']}, Python {on['python']}{used}; load before the run "
        f"{on['load_before']}.*{quick}"
    )
