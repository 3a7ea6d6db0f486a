"""A registry that can't be served stops no signal, and the worker that joins them takes the repaired one in its stride.

PC5 FR-10, AC-7: no redeploy between the broken version and the good one.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rampgate.local.dev import DevStack
from tests.root import ROOT
from tests.stream.local.dev_rig import get, rampgate, running, send
from tests.stream.plain_events import thumb, trace_event
from tests.waiting import until

ASKED = "/eval-config?vertical=receipts&category=receipt_scan"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of a registry that can't be served because of it."""
    folder = tmp_path_factory.mktemp("registry")
    for name in ("configs", "prompts", "specs"):
        shutil.copytree(ROOT / name, folder / name)
    file = folder / "configs/rules/receipts/response_quality.yaml"
    file.write_text(file.read_text().replace("pre_ramp: 3.2", "pre_ramp: high"))
    return file


@pytest.fixture(scope="module")
def dev(broken: Path) -> Iterator[DevStack]:
    with running(DevStack, CONFIGS=os.path.relpath(broken.parents[2]), REGISTRY_TTL_SECONDS="0") as stack:
        yield stack


def joined(dev: DevStack) -> int:
    (row,) = get(dev, "/coverage?vertical=receipts")[1]["verticals"]
    return int(row["both_present"])


def send_turns(dev: DevStack, name: str, turns: int) -> None:
    now = datetime.now(UTC)
    names = [f"{name}-{number}" for number in range(turns)]
    send(dev, "traces", *(trace_event(rid, "receipts", now) for rid in names))
    send(dev, "thumbs", *(thumb(rid, now) for rid in names))


def test_signals_are_joined_without_a_registry_and_a_repaired_one_is_served_by_the_same_process(
    dev: DevStack, broken: Path
) -> None:
    worker = dev.children[0].pid
    assert worker is not None
    status, health = get(dev, "/readyz")
    assert status == 200, "ready for signals"
    assert "no version serves" in health["checks"]["registry"]["detail"]
    assert get(dev, ASKED)[0] == 503
    send_turns(dev, "before", 5)
    until(lambda: joined(dev) == 5, "five turns joined without a registry")
    http = str(dev.addresses["http"])
    refused = rampgate(dev, "refresh", "--http", http, "--json")
    assert refused.code == 1
    (finding,) = refused.json["errors"]
    assert (Path(finding["file"]), finding["field"]) == (broken, "threshold.pre_ramp")
    line = broken.read_text().splitlines()[finding["line"] - 1]
    assert "pre_ramp: high" in line
    broken.write_text(broken.read_text().replace("pre_ramp: high", "pre_ramp: 3.3"))
    assert rampgate(dev, "refresh", "--http", http).code == 0

    def pre_ramp() -> object:
        judges = get(dev, ASKED)[1]["judges"]
        return next(judge["thresholds"]["pre_ramp"] for judge in judges if judge["id"] == "response_quality")

    assert pre_ramp() == 3.3
    broken.write_text(broken.read_text().replace("pre_ramp: 3.3", "pre_ramp: 3.4"))
    os.kill(worker, signal.SIGHUP)
    until(lambda: pre_ramp() == 3.4, "the threshold after SIGHUP")
    send_turns(dev, "after", 5)
    until(lambda: joined(dev) == 10, "five more turns joined")
    assert dev.children[0].pid == worker
    assert get(dev, "/conservation")[1]["balanced"]
