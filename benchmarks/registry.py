"""The registry: what a lookup costs, alone and while new versions come in, and how long validation takes
(PC5 NFR-1, PF-9 NFR-2). No services.

`run` measures in processes of their own, one a round; this module is also what such a process runs.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from datetime import date
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from benchmarks.options import Options
from benchmarks.processes import ROOT, measured

TODAY = date(2026, 11, 21)
CALLS, BESIDE_SECONDS, VALIDATIONS = 200_000, 4.0, 3
COUNT, A_CATEGORY = 500, 10
"""Rule files, and judges of one category, of the larger registry."""
GOALS = {"median_us": 1.0, "p99_us": 50.0, "validate_seconds": 2.0}
FILES = {"open", "os.listdir", "os.scandir"}
Call = Callable[..., object]


def run(options: Options) -> dict[str, Any]:
    """Medians of the rounds; of the longest pause, the longest."""
    rounds = [measured("registry") for _ in range(options.rounds)]
    return {"rounds": options.rounds, "goals": GOALS, "calls": CALLS, "files": COUNT, **_middle(rounds)}


def _middle(rounds: list[Any]) -> Any:
    first = rounds[0]
    if isinstance(first, dict):
        return {
            key: max(one[key] for one in rounds) if key == "max_us" else _middle([one[key] for one in rounds])
            for key in first
        }
    return median(rounds)


def measure() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="rampgate-bench-") as folder:
        root = shipped(Path(folder) / "shipped")
        many = many_rules(Path(folder) / "many")
        validated = validation(many)
        import evalcore

        evalcore.use(root, ttl=None)
        began = time.perf_counter()
        names = evalcore.list_rules()
        loaded = time.perf_counter() - began
        calls = asked(names, list(evalcore.load_manifest()["categories"]))
        for call, arguments in calls.values():
            for one in arguments:
                call(*one)
        alone = {name: figures(timed(call, arguments)) for name, (call, arguments) in calls.items()}
        everything = [(call, one) for call, arguments in calls.values() for one in arguments]
        with counted() as opened:
            for call, one in islice(cycle(everything), 10_000):
                call(*one)
        by_id, ids = calls["get_metric_by_id"]
        with beside(partial(refreshing, root)) as refreshes:
            during = figures(timed(by_id, ids, BESIDE_SECONDS))
        with beside(counting):
            busy = figures(timed(by_id, ids, BESIDE_SECONDS))
        return {
            "load_seconds": loaded,
            "clock_us": figures(timed(_nothing, [()]))["median_us"],
            "alone": alone,
            "files_opened": opened[0],
            "refreshes": refreshes[0],
            "during_refresh": during,
            "beside_a_busy_thread": busy,
            "validate": validated,
        }


def asked(names: list[str], categories: list[str]) -> dict[str, tuple[Call, list[tuple[str, ...]]]]:
    """Each kind of lookup with what it is asked for, in turn: every judge or category there is."""
    import evalcore

    ids: list[tuple[str, ...]] = [(name,) for name in names]
    kebab: list[tuple[str, ...]] = [(name.replace("_", "-"),) for name in names]
    of: list[tuple[str, ...]] = [(name,) for name in categories]
    at: list[tuple[str, ...]] = [(name, m) for name in names for m in ("pre_merge", "pre_ramp", "pre_full")]
    return {
        "get_metric_by_id": (evalcore.get_metric_by_id, ids),
        "get_metric_by_id, kebab case": (evalcore.get_metric_by_id, kebab),
        "get_metric_by_id, for a vertical": (partial(evalcore.get_metric_by_id, vertical="receipts"), ids),
        "get_metrics_for_category": (evalcore.get_metrics_for_category, of),
        "get_metrics_for_category, for a vertical": (
            partial(evalcore.get_metrics_for_category, vertical="receipts"),
            of,
        ),
        "get_threshold": (evalcore.get_threshold, at),
        "get_threshold, for a vertical": (partial(evalcore.get_threshold, vertical="receipts"), at),
    }


def timed(call: Call, arguments: list[tuple[str, ...]], seconds: float | None = None) -> list[int]:
    """Nanoseconds of each call, with the two readings of the clock around it."""
    clock, out = time.perf_counter_ns, []
    turns = cycle(arguments)
    until = clock() + seconds * 1e9 if seconds is not None else float("inf")
    for one in turns if seconds is not None else islice(turns, CALLS):
        began = clock()
        call(*one)
        ended = clock()
        out.append(ended - began)
        if ended > until:
            break
    return out


def figures(times: list[int]) -> dict[str, float]:
    times.sort()
    at = {"median_us": 0.5, "p99_us": 0.99, "p999_us": 0.999}
    found = {name: times[int(share * (len(times) - 1))] / 1000 for name, share in at.items()}
    return found | {"max_us": times[-1] / 1000}


def validation(root: Path) -> dict[str, float]:
    """Of `COUNT` files: the first in a process, and another one."""
    from evalcore.validation import validate_root

    times, cpu = [], []
    for _ in range(1 + VALIDATIONS):
        began, began_cpu = time.perf_counter(), time.process_time()
        result = validate_root(root, TODAY)
        times.append(time.perf_counter() - began)
        cpu.append(time.process_time() - began_cpu)
        if result.errors:
            raise ValueError(f"the files made for this are not valid: {result.errors[0]}")
    return {"first_seconds": times[0], "seconds": median(times[1:]), "cpu_seconds": median(cpu[1:])}


@contextmanager
def counted() -> Iterator[list[int]]:
    """How often a file is opened or a folder listed meanwhile, anywhere in the process."""
    count, on = [0], [True]

    def hook(event: str, _: Any) -> None:
        if on[0] and event in FILES:
            count[0] += 1

    sys.addaudithook(hook)  # there is no way to take one off again
    try:
        yield count
    finally:
        on[0] = False


@contextmanager
def beside(work: Callable[[], None]) -> Iterator[list[int]]:
    """`work` again and again in a thread; the list says how often it was done."""
    stop, done = threading.Event(), [0]

    def go_on() -> None:
        while not stop.is_set():
            work()
            done[0] += 1

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join()


def refreshing(root: Path) -> None:
    """A new version, and a refresh that takes it."""
    import evalcore

    file = root / "rules/ux_quality.yaml"
    text = file.read_text()
    tolerance = "tolerance: 0.05" if "tolerance: 0.04" in text else "tolerance: 0.04"
    file.write_text(text.replace("tolerance: 0.04", tolerance).replace("tolerance: 0.05", tolerance))
    if not evalcore.refresh().valid:
        raise ValueError("the new version was not taken")


def counting() -> None:
    for _ in range(100_000):
        pass


def _nothing() -> None:
    pass


def shipped(folder: Path) -> Path:
    """A copy that may be changed; its root."""
    for name in ("configs", "specs", "prompts"):
        shutil.copytree(ROOT / name, folder / name)
    return folder / "configs"


def many_rules(folder: Path) -> Path:
    """COUNT valid rule files, each a shipped judge under another name, with the manifest that lists them."""
    rules = folder / "configs/rules"
    rules.mkdir(parents=True)
    texts = [(file.stem, file.read_text()) for file in sorted((ROOT / "configs/rules").glob("*.yaml"))]
    manifest = yaml.safe_load((ROOT / "configs/evaluation_manifest.yaml").read_text())
    names, thresholds = [], {}
    for number in range(COUNT):
        stem, text = texts[number % len(texts)]
        name = f"{stem}_{number:03}"
        for field in ("id", "score_name"):
            text = re.sub(rf"^{field}: .*$", f"{field}: {name}", text, flags=re.MULTILINE)
        (rules / f"{name}.yaml").write_text(text)
        names.append(name)
        if stem in manifest["thresholds"]:
            thresholds[name] = deepcopy(manifest["thresholds"][stem])  # or YAML writes an anchor
    made = {
        "dataset": manifest["dataset"],
        "schema": manifest["schema"],
        "archetypes": manifest["archetypes"],
        "categories": {
            f"made_{begin:03}": {"judges": names[begin : begin + A_CATEGORY]} for begin in range(0, COUNT, A_CATEGORY)
        },
        "global_metrics": {"judges": []},
        "thresholds": thresholds,
    }
    (folder / "configs/evaluation_manifest.yaml").write_text(yaml.safe_dump(made, sort_keys=False))
    return folder / "configs"


if __name__ == "__main__":
    print(json.dumps(measure()))
