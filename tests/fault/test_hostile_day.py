"""A piece of the hostile day that `make faults` is: seeded faults of all kinds under load, and an exact ledger."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.fault.hostile_day.day import Plan, run
from tests.fault.hostile_day.schedule import KINDS, LEADERS, schedule

WITHOUT = ("Opik applies late",)
"""It is put right when no write can come any more, which takes longer than the short form may."""


def test_a_seed_gives_the_same_faults_again_and_a_thousand_hold_every_kind() -> None:
    faults = list(schedule(7, 1_000))
    assert faults == list(schedule(7, 1_000))
    assert faults != list(schedule(8, 1_000))
    assert {fault.kind for fault in faults} == set(KINDS)
    assert not {fault.kind for fault in schedule(7, 1_000, LEADERS)} & set(LEADERS)


@pytest.mark.timeout(600)
def test_after_faults_of_all_kinds_the_ledger_is_exact(tmp_path: Path, registry_of_today: Path) -> None:
    """One broker, so leaders stay where they are."""
    plan = Plan(seed=11, faults=12, round_faults=12, nodes=1, patience=200.0, without=WITHOUT)
    outcome = run(plan, tmp_path, registry_of_today)
    assert outcome.wrong == [], outcome.ended


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_after_eighty_faults_with_changes_of_leaders_the_ledger_is_exact(
    tmp_path: Path, registry_of_today: Path
) -> None:
    """Three brokers; a new seed each time."""
    outcome = run(Plan(seed=int(time.time()), faults=80), tmp_path, registry_of_today)
    assert outcome.wrong == [], outcome.ended
