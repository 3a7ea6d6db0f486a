"""Checks of score files: what judging judges takes on arrays, and of 1.2 million lines by the commands themselves
(PF-9 FR-10, FR-13, FR-14).

`run` measures in processes of their own, one a round; this module is also what such a process runs for arrays.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import numpy as np

from benchmarks.options import Options
from benchmarks.processes import ROOT, measured, whole

LINES = 1_200_000
GOALS = {"inversion": 1.0, "drift": 1.0, "suite": 2.0, "spec": 5.0, "alpha": 10.0, "lines": 15.0, "lines_mib": 1_024.0}
COMMANDS = ("inversion", "drift", "agreement")


def run(options: Options) -> dict[str, Any]:
    """Medians of the rounds; of memory the most."""
    rounds = [measured("scores") for _ in range(options.rounds)]
    arrays = {name: median(one[name] for one in rounds) for name in rounds[0]}
    with tempfile.TemporaryDirectory(prefix="rampgate-bench-") as folder:
        write_files(Path(folder))
        lines = {}
        for name in COMMANDS:
            files = ("then.jsonl", "now.jsonl") if name == "drift" else (f"{name}.jsonl",)
            words, out = ("check", name, *files, "--json"), Path(folder, "told.json")
            told = [whole(*words, folder=Path(folder), out=out) for _ in range(options.rounds)]
            lines[name] = {
                "seconds": median(one["seconds"] for one in told),
                "cpu_seconds": median(one["cpu_seconds"] for one in told),
                "mib": max(one["mib"] for one in told),
            }
    return {"rounds": options.rounds, "goals": GOALS, "lines": LINES, "arrays": arrays, "files": lines}


def arrays() -> dict[str, float]:
    """Seconds of each check on numbers that are in memory."""
    from evalcore.agreement.alpha import alpha_interval, ratings
    from evalcore.drift.divergence import Sample, compare
    from evalcore.drift.scale import fitting
    from evalcore.inversion.check import Pairs, check
    from schemas.checks.agreement import Level

    rng = np.random.default_rng(1)
    people = rng.integers(1, 6, (12, 100_000)).astype(float)
    judges = np.clip(people + rng.integers(-1, 2, people.shape), 1, 5)
    items = [f"item-{number}" for number in range(100_000)]
    pairs = {f"judge-{n}": Pairs(items, judges[n], people[n]) for n in range(12)}
    found = {"inversion": timed(lambda: check(pairs))}
    then, now = (rng.integers(1, 6, (50, 100_000)).astype(float) for _ in range(2))
    scale = fitting(then[0])

    def drift() -> None:
        for before, after in zip(then, now, strict=True):
            compare(Sample(before), Sample(after), scale, 0.01)

    found["drift"] = timed(drift)
    truth = rng.normal(size=(10_000, 1))
    fine = np.exp(truth + rng.normal(size=(10_000, 5))).round(3)
    coarse = np.clip(np.round(truth * 1.5 + 3 + rng.normal(size=(10_000, 5)) / 2), 1, 5)
    places = [item for item in range(10_000) for _ in range(5)]
    for name, scores in (("coarse", coarse), ("fine", fine)):
        rated = ratings(places, scores.ravel().tolist())[0]
        for level in Level:
            found[f"alpha, {level}, {name}"] = timed(lambda level=level, rated=rated: alpha_interval(rated, level, 1))
    found["suite"] = suite(rng)
    found["spec"] = spec()
    return found


def spec() -> float:
    """Seconds of a spec's layers without a model on 10,000 stored traces of eleven tool and eleven model calls each."""
    from evalcore.specs.layers import judged
    from evalcore.trajectory.record import trajectory_of
    from rampgate.suite.spec_files import open_spec

    demo = ROOT / "examples" / "rag"
    weather = next(one for one in open_spec(demo / "agentci_spec.yaml").spec.queries if one.id == "weather")
    kept = json.loads((demo / "baselines" / "v1-broken.json").read_text())["queries"]["weather"]["trace"]
    text, reference = json.dumps(kept), trajectory_of(kept, kept["latency_ms"])

    def all_judged() -> None:
        for _ in range(10_000):
            trace = json.loads(text)
            judged(weather, trajectory_of(trace, trace["latency_ms"]), {}, reference)

    return timed(all_judged)


def suite(rng: np.random.Generator) -> float:
    """Seconds of a comparison's statistics: three samples of 2,000 cases on each side, in 20 slices."""
    from evalcore.drift.scale import Scale
    from evalcore.suite.gates import judge
    from evalcore.suite.pairing import paired
    from evalcore.suite.power import powers
    from evalcore.suite.results import Case, Sample

    rates = rng.beta(6.4, 1.6, 2_000)

    def run() -> dict[str, Case]:
        return {
            f"c{n}": Case(
                f"c{n}", {f"slice-{n % 20}"},
                samples=[Sample(sample, {"ok": float(rng.random() < rate)}) for sample in range(3)],
            )
            for n, rate in enumerate(rates)
        }  # fmt: skip

    baseline, candidate = run(), run()

    def compared() -> None:
        found = paired(baseline, candidate, "ok", Scale(0.0, 1.0, whole=False))
        powers(found, judge(found).comparison)

    return timed(compared)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def write_files(folder: Path) -> None:
    """A file for each command, 1.2 million lines in all of them that it reads."""
    random = Random(1)

    def near(score: int) -> int:
        return min(5, max(1, score + random.randint(-1, 1)))

    def inversion() -> Iterator[dict[str, Any]]:
        for number in range(LINES):
            score = random.randint(1, 5)
            judge, item = f"judge-{number % 12}", f"item-{number // 12:06}"
            yield {"judge_id": judge, "item_id": item, "judge_score": near(score), "human_score": score}

    def scores(many: int) -> Iterator[dict[str, Any]]:
        for number in range(many):
            yield {
                "judge_id": f"judge-{number % 6}", "item_id": f"item-{number // 6:06}", "score": random.randint(1, 5)
            }  # fmt: skip

    def agreement() -> Iterator[dict[str, Any]]:
        for number in range(LINES // 5):
            score = random.randint(1, 5)
            for who in range(5):
                yield {
                    "category": f"category-{number % 24}", "item_id": f"item-{number // 24:06}",
                    "annotator": f"who-{who}", "score": near(score),
                }  # fmt: skip

    files = {"inversion": inversion(), "then": scores(LINES // 2), "now": scores(LINES // 2), "agreement": agreement()}
    for name, rows in files.items():
        with (folder / f"{name}.jsonl").open("w") as file:
            file.writelines(f"{json.dumps(row)}\n" for row in rows)


if __name__ == "__main__":
    print(json.dumps(arrays()))
