"""Two of the benchmarks, throughput and verdicts, still run: their smallest form, no figure asserted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks import tables, throughput, verdicts
from benchmarks.judges import stand_in
from benchmarks.lab import Lab
from benchmarks.options import Options
from rampgate.local.services.process import ServiceUnavailable
from tests.giving_up import give_up


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    try:
        with Lab() as made:
            yield made
    except ServiceUnavailable as error:
        give_up(error)


def test_worker_and_bare_loop_do_the_whole_job_side_by_side(lab: Lab) -> None:
    options = Options(rounds=1, events=3_000, letters="ae")
    throughput.prepare(lab, options)
    found = throughput.run(lab, options)
    assert {"a", "e"} == found["contenders"].keys()
    assert any("bare aiokafka loop" in line for line in tables.throughput(found))


def test_verdicts_of_known_scores_and_of_gates_at_once_come_as_expected(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "REMEMBERED", 0)  # two versions are more than nothing
    with stand_in(0.0) as model:
        before = verdicts.scored_before(lab, model, 2, versions=2)
        at_once = verdicts.at_once(lab, model, [verdicts.SMALL, verdicts.EQUAL])
    assert (before["requests"], at_once["sizes"]) == (2, [verdicts.SMALL, verdicts.EQUAL])
    found = {"goals": verdicts.GOALS, "sample": verdicts.SAMPLE, "judges": verdicts.JUDGES}
    found |= {"in_memory": before, "in_redis": before}
    found |= {"at_once": {"gates": 2, "latency": 0.0, "equal": at_once, "small": at_once}}
    assert any("2 alike" in line for line in tables.verdicts(found))
