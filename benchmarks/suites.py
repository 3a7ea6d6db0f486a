"""Suites: how near to the bound (calls × latency ÷ calls at once) `rampgate suite run` comes as a whole process, what
the same run costs again with all kept, and whether its memory grows with its cases. The model is the stand-in, in a
process of its own.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from benchmarks.judges import stand_in
from benchmarks.options import Options, say
from benchmarks.processes import whole

GOALS = {"ratio": 1.2, "warm_seconds": 2.0, "memory_ratio": 1.3}
AT_ONCE = 50
LATENCY = 0.3
SAMPLES = 3
JUDGES = ("capability_alignment", "response_quality", "ux_quality", "tool_compliance")
SMALL, MIDDLE, LARGE = 50, 200, 2_000
ROUNDS_OF_MANY = 3
"""A run of 2,000 cases takes two and a half minutes."""
AGENT = """
import os


def answer(case):
    return {"output": f"Answer {os.urandom(8).hex()} to {case['input']}, in some more words.", "tool_calls": []}
"""
"""Each sample is another one, so that each is judged."""


def run(options: Options) -> dict[str, Any]:
    """Medians of the rounds; of memory the most."""
    found = {}
    with stand_in(LATENCY) as url:
        for cases in (SMALL, MIDDLE, LARGE):
            rounds = options.rounds if cases == SMALL else min(options.rounds, ROUNDS_OF_MANY)
            say(f"  {cases:,} cases, {rounds} rounds")
            told = [one_round(cases, url) for _ in range(rounds)]
            bound = cases * SAMPLES * len(JUDGES) * LATENCY / AT_ONCE
            found[str(cases)] = {
                "bound": bound,
                **{name: median(one[name] for one in told) for name in ("cold_seconds", "warm_seconds", "cold_cpu")},
                "mib": max(one["mib"] for one in told),
                "warm_mib": max(one["warm_mib"] for one in told),
            }
    return {
        "rounds": options.rounds, "goals": GOALS, "at_once": AT_ONCE, "latency": LATENCY, "samples": SAMPLES,
        "judges": len(JUDGES), "measured": found,
    }  # fmt: skip


def one_round(cases: int, url: str) -> dict[str, float]:
    """A run with an empty store and the same run again."""
    with tempfile.TemporaryDirectory(prefix="rampgate-bench-") as made:
        folder = Path(made)
        (folder / "agent.py").write_text(AGENT)
        rows = [{"id": f"c{n}", "input": f"question {n}", "tags": [f"slice-{n % 20}"]} for n in range(cases)]
        (folder / "cases.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        suite = {
            "suite": "bench", "agent": "bench", "cases": {"file": "cases.jsonl"}, "samples": SAMPLES,
            "candidate": {"entry": "agent:answer", "parts": {"code": {"files": ["agent.py"]}}, "at_once": 8},
            "judges": list(JUDGES), "score": "response_quality",
        }  # fmt: skip
        (folder / "suite.yaml").write_text(yaml.safe_dump(suite))
        cold, warm = (command(folder, url) for _ in range(2))
    wanted = cases * SAMPLES * len(JUDGES)
    if (cold["calls"], warm["calls"], cold["unscored"]) != (wanted, 0, 0):
        raise RuntimeError(f"{wanted} calls were to be made, and none again: {cold}, {warm}")
    return {
        "cold_seconds": cold["seconds"], "cold_cpu": cold["cpu_seconds"], "mib": cold["mib"],
        "warm_seconds": warm["seconds"], "warm_mib": warm["mib"],
    }  # fmt: skip


def command(folder: Path, url: str) -> dict[str, float]:
    """Seconds, CPU seconds and MiB of one run, with what it says of its calls."""
    words, out = (str(folder / "suite.yaml"), "--first-run", "--json"), folder / "told.json"
    model = {"RAMPGATE_MODEL_URL": url, "RAMPGATE_MODEL_CALLS_AT_ONCE": str(AT_ONCE)}
    spent = whole("suite", "run", *words, folder=folder, out=out, environment=model)
    told = json.loads(out.read_bytes())
    return spent | {"calls": told["judge_calls"], "unscored": told["unscored"]}
