"""Two of the benchmarks, throughput and verdicts, still run: their smallest form, no figure asserted."""

from __future__ import annotations

import pytest

from benchmarks import tables, throughput, verdicts
from benchmarks.lab import Lab
from benchmarks.options import Options
from rampgate.services.unavailable import ServiceUnavailable
from tests.giving_up import give_up


def test_worker_and_bare_loop_do_the_whole_job_side_by_side() -> None:
    options = Options(rounds=1, events=3_000, letters="ae")
    try:
        with Lab() as lab:
            throughput.prepare(lab, options)
            found = throughput.run(lab, options)
    except ServiceUnavailable as error:
        give_up(error)
    assert {"a", "e"} == found["contenders"].keys()
    assert any("bare aiokafka loop" in line for line in tables.throughput(found))


def test_verdicts_of_known_scores_and_of_gates_at_once_come_as_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "REMEMBERED", 0)  # two versions are more than nothing
    try:
        found = verdicts.run(Options(verdicts=2, versions=2, gates=2))
    except ServiceUnavailable as error:
        give_up(error)
    assert found["in_memory"]["requests"] == found["in_redis"]["requests"] == 2
    assert found["at_once"]["small"]["sizes"] == [verdicts.SMALL, verdicts.EQUAL]
    assert any("2 alike" in line for line in tables.verdicts(found))
