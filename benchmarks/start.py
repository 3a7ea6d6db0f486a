"""Start-up: how long a command takes before it does anything.

Each is a process of its own, once to warm the file cache and then as many times as there are rounds; medians.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.options import Options

PROGRAM = Path(sys.executable).with_name("rampgate")
HELP = {"rampgate --help": ("--help",), "rampgate worker --help": ("worker", "--help")}
GOALS = {"rampgate --help": 0.3}


def run(options: Options) -> dict[str, Any]:
    """Seconds until the process has ended, and the CPU seconds it took."""
    found = {name: ended(arguments, options.rounds) for name, arguments in HELP.items()}
    return {"rounds": options.rounds, "goals": GOALS, "commands": found}


def ended(arguments: tuple[str, ...], rounds: int) -> dict[str, float]:
    measured = [once(arguments) for _ in range(1 + rounds)][1:]
    return {
        "seconds": median(seconds for seconds, _ in measured),
        "cpu_seconds": median(cpu for _, cpu in measured),
    }


def once(arguments: tuple[str, ...]) -> tuple[float, float]:
    began, before = time.perf_counter(), os.times()
    subprocess.run([PROGRAM, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - began, cpu
