"""`examples/pc6_subscriber.py` ramps versions up against `rampgate dev`, as PC6 does (PC5 §5.8, AC-4)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rampgate.local.dev import DevStack
from tests.root import ROOT
from tests.stream.gates.ramp_rig import thumb, trace
from tests.stream.local.dev_rig import get, running, send
from tests.waiting import until

EXAMPLE = ROOT / "examples" / "pc6_subscriber.py"
ENOUGH, FOR_THE_FIRST_STEP = 304, 104


@pytest.fixture(scope="module")
def dev(served_today: Path) -> Iterator[DevStack]:
    with running(DevStack) as stack:
        send(stack, "traces", *(trace(f"good{n}", "good") for n in range(ENOUGH)))
        send(stack, "traces", *(trace(f"few{n}", "few") for n in range(FOR_THE_FIRST_STEP)))
        send(stack, "traces", *(marked(f"bad{n}", "bad") for n in range(FOR_THE_FIRST_STEP)))
        send(stack, "thumbs", *(thumb(f"good{n}") for n in range(40)))
        until(lambda: both_present(stack) == 40, "the traffic joined")
        yield stack


def both_present(dev: DevStack) -> int:
    return sum(row["both_present"] for row in get(dev, "/coverage")[1]["verticals"])


def marked(response_id: str, version: str) -> dict[str, Any]:
    """A trace that the stand-in takes for a bad one."""
    event = trace(response_id, version)
    event["output"]["messages"][0]["content"][0]["text"] = "no idea #quality:0.3"
    return event


def ramp(dev: DevStack, version: str, *more: str) -> tuple[int, list[str]]:
    kafka = str(dev.addresses["kafka"])
    command = [sys.executable, str(EXAMPLE), "--kafka", kafka, "--version", version, "--vertical", "receipts", *more]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False, cwd="/")
    assert ran.returncode in (0, 1), ran.stderr
    return ran.returncode, ran.stdout.splitlines()


def test_pc5_ac4_a_good_version_goes_through_all_its_steps(dev: DevStack) -> None:
    code, lines = ramp(dev, "good", "--steps", "5", "25", "100")
    assert [line for line in lines if line.startswith("to ")] == [
        "to 5 %: warn (pre_ramp), proceed",  # no pull request's gate has published a verdict of this version
        "to 25 %: pass (no gate), proceed",
        "to 100 %: pass (pre_full), proceed",
    ]
    assert (code, lines[-1]) == (0, "done: 100 %")


def test_pc5_ac4_a_bad_version_never_leaves_zero(dev: DevStack) -> None:
    code, lines = ramp(dev, "bad")
    assert lines[0] == "to 5 %: fail (pre_ramp), halt"
    assert any(line.startswith("  floor_breach: ") for line in lines)
    assert (code, lines[-1]) == (1, "halted at 0 %")


def test_pc5_ac4_a_version_that_fails_pre_full_stays_at_the_last_step_that_passed(dev: DevStack) -> None:
    """It has enough traces for the first gate, and too few for the second."""
    code, lines = ramp(dev, "few", "--steps", "5", "25", "100")
    assert any(line.startswith("  insufficient_sample: ") for line in lines)
    assert (code, lines[-1]) == (1, "halted at 25 %")


def test_a_judge_that_does_not_exist_is_named(dev: DevStack) -> None:
    code, lines = ramp(dev, "good", "--judges", "ux_qality", "--steps", "5", "100")
    assert code == 1
    assert "ux_qality" in next(line for line in lines if "invalid_request" in line)
