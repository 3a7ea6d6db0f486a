"""Measures in processes of their own, so that no round finds what one before left in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rampgate.local.services.process import ChildProcess

ROOT = Path(__file__).resolve().parents[1]


def measured(module: str, *words: str) -> Any:
    """Returns what `python -m benchmarks.MODULE WORD...` prints, JSON."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *words]
    return json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout)


@contextmanager
def serving(module: str, *words: str, ready: Callable[[ChildProcess], bool]) -> Iterator[None]:
    """A server, `python -m MODULE WORD...`, from when it is ready until the block ends."""
    with tempfile.TemporaryDirectory(prefix="rampgate-bench-") as folder:
        command = [sys.executable, "-m", module, *words]
        child = ChildProcess(module, command, Path(folder), environment={"PYTHONPATH": str(ROOT)})
        child.start()
        try:
            child.wait_ready(lambda: ready(child), 30.0)
            yield
        finally:
            child.kill()


def whole(*words: str, folder: Path, out: Path, environment: dict[str, str] | None = None) -> dict[str, float]:
    """Returns seconds, CPU seconds and MiB of `rampgate WORD...`, start of the interpreter included; its answer goes
    into `out`. Raises RuntimeError where it ends with neither 0 nor 1."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("RAMPGATE_")}
    own |= {"PYTHONPATH": str(ROOT), "RAMPGATE_CONFIGS": str(ROOT / "configs"), **(environment or {})}
    began = time.perf_counter()
    with out.open("wb") as file:
        command = [sys.executable, "-m", "rampgate", *words]
        child = subprocess.Popen(command, cwd=folder, stdout=file, stderr=subprocess.DEVNULL, env=own)
        _, status, used = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        raise RuntimeError(f"rampgate {' '.join(words)} ended with {child.returncode}: {out.read_text()[:500]}")
    return {"seconds": seconds, "cpu_seconds": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024}
