"""Which judges are suspended, by what checks found of them."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from typing import Any

import pytest

from evalcore.canaries.suspensions import Suspensions
from schemas.checks.standing import CheckedFor, CheckVerdict, StandingRecord

TODAY = date(2026, 11, 22)
PASSED, SUSPENDED, UNDECIDED = CheckVerdict.PASSED, CheckVerdict.SUSPENDED, CheckVerdict.UNDECIDED


def record(verdict: CheckVerdict, day: int, version: str = "v1", **more: Any) -> StandingRecord:
    known = {"judge_id": "tone", "reason": CheckedFor.CANARIES, "model": "m", "message": "12 of 12 items raised"}
    at = datetime(2026, 11, day, tzinfo=UTC)
    return StandingRecord(
        event_id=f"{day}{version}", judge_version=version, verdict=verdict, at=at, **{**known, **more}
    )


def why(*records: StandingRecord, version: str = "v1", today: date = TODAY) -> str:
    known = Suspensions()
    for one in records:
        known.add(one)
    return known.why("tone", version, today)


def test_a_judge_that_was_never_checked_is_not_suspended() -> None:
    assert why() == ""
    assert why(record(SUSPENDED, 1, judge_id="other")) == ""


def test_a_judge_that_moved_is_suspended_until_it_passes() -> None:
    assert why(record(SUSPENDED, 1)) == "by its check of canaries on 2026-11-01: 12 of 12 items raised"
    assert why(record(SUSPENDED, 1), record(PASSED, 2)) == ""
    assert why(record(PASSED, 1), record(SUSPENDED, 2)) != ""


def test_a_check_that_could_not_tell_leaves_the_judge_as_it_stood() -> None:
    assert why(record(SUSPENDED, 1), record(UNDECIDED, 2)) != ""
    assert why(record(PASSED, 1), record(UNDECIDED, 2)) == ""
    assert why(record(UNDECIDED, 2)) == ""


def test_a_change_of_rubric_or_model_lifts_no_suspension_and_asks_for_a_pass_of_its_own() -> None:
    """A judge's version is the hash of all that decides a score."""
    assert why(record(SUSPENDED, 1), version="v2") != ""
    assert "it changed since its check of canaries on 2026-11-01" in why(record(PASSED, 1), version="v2")
    assert why(record(SUSPENDED, 1), record(PASSED, 2, "v2"), version="v2") == ""
    assert why(record(PASSED, 1), record(SUSPENDED, 2, "v2"), version="v1") == "", "rolled back to what had passed"


def test_a_judge_that_inverts_is_suspended_apart_from_its_canaries_until_its_day() -> None:
    inverted = record(SUSPENDED, 1, reason=CheckedFor.INVERSION, until=date(2026, 11, 22))
    assert "inversion" in why(inverted, record(PASSED, 2))
    assert "until 2026-11-22" in why(inverted)
    assert why(inverted, today=date(2026, 11, 23)) == ""
    assert why(record(PASSED, 1, reason=CheckedFor.INVERSION), version="v2") == "", "only canaries are passed anew"


def test_a_version_without_a_result_stands_as_the_latest_one_did() -> None:
    reason = CheckedFor.INVERSION
    earlier, latest = record(PASSED, 1, "v1", reason=reason), record(SUSPENDED, 2, "v2", reason=reason)
    assert why(earlier, latest, version="v3") != ""
    assert why(record(SUSPENDED, 1, "v1", reason=reason), record(PASSED, 2, "v2", reason=reason), version="v3") == ""


def test_the_order_of_arrival_and_repetitions_change_nothing() -> None:
    records = [record(SUSPENDED, 1), record(PASSED, 3), record(SUSPENDED, 2), record(PASSED, 4, "v2")]
    for order in itertools.permutations(records):
        assert why(*order, *order) == ""


def test_when_a_judge_last_passed_is_known_and_of_a_suspended_one_is_not() -> None:
    known = Suspensions()
    known.add(record(PASSED, 1))
    assert known.passed_at() == {"tone": datetime(2026, 11, 1, tzinfo=UTC).timestamp()}
    known.add(record(SUSPENDED, 2))
    assert known.passed_at() == {}


def test_a_compacted_topic_keeps_what_is_asked_for() -> None:
    """Of each key the last record stays; the keys tell judge, check and version apart."""
    records = [record(PASSED, 1), record(SUSPENDED, 2, "v2"), record(SUSPENDED, 3, reason=CheckedFor.INVERSION)]
    assert len({one.key for one in records}) == 3
    assert record(PASSED, 1).key == record(SUSPENDED, 9).key


@pytest.mark.parametrize("field", ["event_id", "judge_id", "judge_version"])
def test_a_record_without_its_names_is_none(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        StandingRecord.model_validate({**record(PASSED, 1).model_dump(), field: ""})
