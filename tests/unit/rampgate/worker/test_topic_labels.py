"""Labels of a worker's metrics are the registry's, whatever a topic says: a stranger makes no series."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from evalcore import reloading
from evalcore.canaries.suspensions import Suspensions
from rampgate.settings import Settings
from rampgate.wiring import Parts, make_parts
from rampgate.worker.gates import Gates
from rampgate.worker.operators import user_weeks
from schemas.checks.standing import CheckedFor, CheckVerdict, StandingRecord
from streams.alerts.notifiers import Slack
from streams.alerts.user_weeks import Seen
from tests.root import ROOT

MADE_UP = 3_000


@pytest.fixture
async def parts() -> AsyncIterator[Parts]:
    reloading.use(ROOT / "configs")
    reloading.current()
    made = make_parts(Settings(kafka="127.0.0.1:1", redis="redis://127.0.0.1:1/0", configs=ROOT / "configs"))
    yield made
    await made.close()


def series(parts: Parts) -> list[str]:
    return [line for line in parts.metrics.exposition().decode().splitlines() if "stranger" in line]


def checked(judge: str, reason: CheckedFor) -> StandingRecord:
    return StandingRecord(
        event_id=judge, judge_id=judge, judge_version="v1", model="m", reason=reason, verdict=CheckVerdict.PASSED,
        at=datetime(2026, 11, 1, tzinfo=UTC),
    )  # fmt: skip


async def test_made_up_ids_on_the_topic_of_standings_make_no_series(parts: Parts) -> None:
    scoring: Any = SimpleNamespace()
    gates, known = Gates(parts, scoring), Suspensions()
    registry = reloading.loaded()
    assert registry is not None
    ours = next(judge.id for judge in registry.all())
    for judge in (ours, *(f"stranger_{number}" for number in range(MADE_UP))):
        for reason in CheckedFor:
            known.add(checked(judge, reason))
    gates._checks_read(known)
    assert series(parts) == []
    ages = parts.metrics.exposition().decode()
    assert f'rampgate_judge_canaries_overdue{{judge_id="{ours}"}}' in ages, "those of the registry are shown"


async def test_made_up_names_on_the_topic_of_weeks_make_no_series(parts: Parts) -> None:
    notifier: Any = SimpleNamespace()
    registry = reloading.loaded()
    assert registry is not None
    ours, vertical = next(judge.id for judge in registry.all()), sorted(parts.verticals)[0]
    weeks = user_weeks(parts, Slack(notifier, None), lambda: False)
    weeks.observe(Seen({(f"stranger_{n}", "a stranger's"): 2 for n in range(9)} | {(ours, vertical): 2}, behind=False))
    assert series(parts) == []
    shown = f'rampgate_judge_weeks_against_users{{judge_id="{ours}",vertical="{vertical}"}} 2.0'
    assert shown in parts.metrics.exposition().decode()
