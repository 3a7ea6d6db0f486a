"""Where our worker's time goes, by stage: a round of (a) under the sampler."""

from __future__ import annotations

import json
import site
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.contest import CONTENDERS, play
from benchmarks.lab import Lab
from benchmarks.options import Options
from benchmarks.processes import ROOT

# (part of the file's path, function or "" for all, stage); the innermost frame with a rule decides.
RULES: tuple[tuple[str, str, str], ...] = (
    ("agents/codec.py", "", "decode and validate"),
    ("agents/dynamodb.py", "", "decode and validate"),
    ("agents/thumbs.py", "merge", "merge"),
    ("agents/thumbs.py", "", "decode and validate"),
    ("agents/join/join.py", "merge_signal", "merge"),
    ("agents/join/join.py", "", "plan writes"),
    ("agents/join/counting.py", "", "count"),
    ("agents/join/batches.py", "", "count"),
    ("agents/join/step.py", "write_scores", "plan writes"),
    ("agents/join/step.py", "send", "plan writes"),
    ("agents/join/step.py", "note_outcomes", "plan writes"),
    ("agents/join/step.py", "load", "load turns"),
    ("agents/join/step.py", "record", "encode turns"),
    ("agents/join/step.py", "account", "count"),
    ("agents/join/step.py", "", "count"),
    ("agents/join/fast_path.py", "", "prepare turns"),
    ("agents/join/turn.py", "with_first_thumb", "encode turns"),
    ("agents/join/turn.py", "encode_turn", "encode turns"),
    ("agents/join/turn.py", "", "plan writes"),
    ("streams/redis/state.py", "", "redis: pack"),
    ("/redis/", "", "redis: client"),
    ("/opik/client.py", "encode", "encode scores"),
    ("/opik/", "", "http"),
    ("/httpx/", "", "http"),
    ("/httpcore/", "", "http"),
    ("/h11/", "", "http"),
    ("/anyio/", "", "http"),
    ("/aiohttp/", "", "http"),
    ("streams/metric", "", "metrics"),
    ("/prometheus_client/", "", "metrics"),
    ("rampgate/metrics_file.py", "", "metrics"),
    # The first function after a batch: a timer that ran out while its objects were let go is noticed here.
    ("streams/metrics.py", "observe_report", "free the batch's objects"),
    ("streams/maintenance.py", "", "maintenance"),
    ("streams/opik", "", "http"),
    ("streams/", "", "transport and pipeline"),
    ("/faust/", "", "Faust"),
    ("/mode/", "", "Faust"),
    ("/aiokafka/", "", "Faust"),
)


def stage_of(stack: list[list[str]]) -> str:
    """The stage that a stack of the main thread belongs to."""
    for file, function in stack:
        for part, name, stage in RULES:
            if part in file and name in ("", function):
                return stage
    return "event loop, sockets, the rest"


def run(lab: Lab, options: Options) -> dict[str, Any]:
    """Microseconds of CPU an event costs in each stage, and the dearest functions. The topic has been prepared."""
    out = lab.folder / "profile.json"
    one = play(lab, CONTENDERS["a"], options.events, profile=out)
    found = json.loads(out.read_text())
    events = one.profiled
    stages: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    for stack, spent in found["cpu"]:
        stages[stage_of(stack)] += spent
        file, function = stack[0]
        functions[f"{shorten(file)}:{function}"] += spent
    threads = {"main": sum(stages.values()), **found["threads"]}
    stages["fetch and commit (own thread)"] = sum(found["threads"].values())
    total = sum(stages.values())

    def us(spent: float) -> float:
        return round(spent / 1000 / events, 3)

    return {
        "events_per_second_under_the_sampler": one.rate,
        "seconds": found["seconds"],
        "busy": {thread: round(spent / 1e9 / found["seconds"], 3) for thread, spent in threads.items()},
        "gc_share": round(found["gc_seconds"] / found["seconds"], 4),
        "stages": [[stage, us(spent), round(spent / total, 4)] for stage, spent in stages.most_common()],
        "functions": [[name, us(spent)] for name, spent in functions.most_common(30)],
        "lines": [[shorten(name), us(spent)] for name, spent in found["lines"][:40]],
    }


def shorten(file: str) -> str:
    """A path from the project's or the packages' folder on."""
    for folder in (str(ROOT), *site.getsitepackages(), str(Path(json.__file__).parents[1])):
        file = file.replace(folder + "/", "")
    return file
