"""`python -m tests.fault.hostile_day --seed S --faults N`: the long form, which `make faults` runs. Exit code 1 where a
ledger was not exact."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from evalcore.registry.disk import today
from rampgate.local.demo.registry import seeded
from tests.fault.hostile_day.day import Plan, run
from tests.fault.hostile_day.schedule import KINDS
from tests.fork_server import warm_children


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.fault.hostile_day", description=__doc__)
    words.add_argument("--seed", type=int, default=int(time.time()), help="default: the time; it is printed")
    words.add_argument("--faults", type=int, default=1_000)
    words.add_argument("--round", type=int, default=40, help="faults before each look at the ledger")
    words.add_argument("--without", action="append", default=[], choices=KINDS, help="leave a kind of faults out")
    words.add_argument("--logs", type=Path, help="where the workers' logs go; default: a folder that is removed")
    given = words.parse_args()
    with tempfile.TemporaryDirectory(prefix="rampgate-day-") as temporary, warm_children():
        folder = given.logs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        registry = Path(temporary) / "registry"
        registry.mkdir()
        began = time.monotonic()
        plan = Plan(given.seed, given.faults, given.round, without=tuple(given.without), say=say)
        outcome = run(plan, folder, seeded(registry, today()))
    for line in outcome.ended:
        say(f"a worker ended by itself: {line}")
    for line in outcome.wrong:
        say(line)
    say(", ".join(f"{count} × {kind}" for kind, count in outcome.struck.most_common()))
    held = "EXACT" if not outcome.wrong else f"NOT EXACT: {len(outcome.wrong)} differences"
    seconds = time.monotonic() - began
    say(f"seed {given.seed}: {outcome.struck.total()} faults, {outcome.records} records, {seconds:.0f} s: {held}")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
