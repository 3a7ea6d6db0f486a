"""Start-up: how long a command takes before it does anything, and `dev` until it is ready. A worker's: `restart`.

Each is a process of its own, once to warm the file cache and then as many times as there are rounds; medians.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.lab import Failed
from benchmarks.options import Options

PROGRAM = Path(sys.executable).with_name("rampgate")
HELP = {"rampgate --help": ("--help",), "rampgate worker --help": ("worker", "--help")}
DEV = {"rampgate dev, to ready": ("dev", "--json"), "rampgate dev --real, to ready": ("dev", "--real", "--json")}
GOALS = {"rampgate --help": 0.3, "rampgate dev, to ready": 5.0, "rampgate dev --real, to ready": 10.0}
Measured = tuple[float, float]
"""Seconds, and CPU seconds of the process and all it started."""


def run(options: Options) -> dict[str, Any]:
    found = {name: repeated(lambda a=arguments: ended(a), options.rounds) for name, arguments in HELP.items()}
    found |= {name: repeated(lambda a=arguments: ready(a), options.rounds) for name, arguments in DEV.items()}
    return {"rounds": options.rounds, "goals": GOALS, "commands": found}


def repeated(measure: Callable[[], Measured], rounds: int) -> dict[str, float]:
    measured = [measure() for _ in range(1 + rounds)][-max(rounds, 1) :]
    return {
        "seconds": median(seconds for seconds, _ in measured),
        "cpu_seconds": median(cpu for _, cpu in measured),
    }


def ended(arguments: tuple[str, ...]) -> Measured:
    """Until the command has ended."""
    began, before = time.perf_counter(), cpu()
    subprocess.run([PROGRAM, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began, cpu() - before


def ready(arguments: tuple[str, ...]) -> Measured:
    """Until `dev` prints its addresses, which it does once its worker answers that it is ready. The CPU includes its
    end."""
    began, before = time.perf_counter(), cpu()
    process = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    line = process.stdout.readline() if process.stdout is not None else b""
    seconds = time.perf_counter() - began
    process.send_signal(signal.SIGINT)
    process.wait(60)
    if not line:
        raise Failed(f"rampgate {' '.join(arguments)} ended with {process.returncode} and said nothing")
    return seconds, cpu() - before


def cpu() -> float:
    """CPU seconds of all children that have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system
