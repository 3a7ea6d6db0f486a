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


def held(verdict: CheckVerdict, day: int, version: str = "v1", reference: str = "round-1") -> StandingRecord:
    return record(verdict, day, version, reason=CheckedFor.INVERSION, reference=reference, message="inverted: -0.5")


def test_an_inverted_judge_is_suspended_until_a_version_of_it_passes() -> None:
    assert why(held(SUSPENDED, 1)) == "by its check of inversion on 2026-11-01: inverted: -0.5"
    assert why(held(SUSPENDED, 1), version="v2") != ""
    assert why(held(SUSPENDED, 1), held(PASSED, 2, "v2"), version="v2") == ""
    assert why(held(SUSPENDED, 1), held(PASSED, 2, "v2"), version="v1") != ""


def test_a_new_version_is_held_against_people_before_it_counts() -> None:
    assert "it changed since its check of inversion on 2026-11-01" in why(held(PASSED, 1), version="v2")
    assert why(held(PASSED, 1), held(PASSED, 2, "v2"), version="v2") == ""
    assert why(held(SUSPENDED, 1), held(PASSED, 2, "v2"), version="v3") != ""


def test_a_new_version_of_which_nobody_can_tell_counts_unless_the_judge_was_inverted() -> None:
    """Else a judge that nearly always says the same would fail its gates for ever."""
    assert why(held(PASSED, 1), held(UNDECIDED, 2, "v2"), version="v2") == ""
    assert why(held(SUSPENDED, 1), held(UNDECIDED, 2, "v2"), version="v2") != ""
    assert why(held(UNDECIDED, 1), version="v1") == ""


def test_one_version_of_a_judge_is_decided_once_by_one_version_of_the_reference_set() -> None:
    """At 2.5 % false alarms a look, looking again at the same would suspend every sound judge in the end."""
    looks = [held(PASSED, 1), held(SUSPENDED, 2), held(SUSPENDED, 3)]
    for order in itertools.permutations(looks):
        assert why(*order) == ""
    assert why(held(SUSPENDED, 1), held(PASSED, 2)) != "", "nor does looking again lift a suspension"
    assert why(held(PASSED, 1), held(SUSPENDED, 2, reference="round-2")) != ""
    assert why(held(SUSPENDED, 1), held(PASSED, 2, reference="round-2")) == ""
    assert held(PASSED, 1).key != held(PASSED, 1, reference="round-2").key


def test_it_is_known_who_is_inverted_and_when_each_was_last_held_against_people() -> None:
    known = Suspensions()
    for one in (held(PASSED, 1), held(SUSPENDED, 3, reference="round-2"), record(SUSPENDED, 9, judge_id="other")):
        known.add(one)
    assert known.inverted({"tone": "v1", "other": "v1"}, TODAY) == {"platform": 1}
    assert known.held_against_people_at() == {"tone": datetime(2026, 11, 3, tzinfo=UTC).timestamp()}
    known.add(held(UNDECIDED, 8, reference="round-3"))
    assert known.inverted({"tone": "v1"}, TODAY) == {"platform": 1}
    assert known.held_against_people_at() == {"tone": datetime(2026, 11, 8, tzinfo=UTC).timestamp()}


def test_pf9_fr10_10_2_a_judge_is_inverted_in_each_vertical_whose_people_it_scores_against() -> None:
    """What one vertical's people found, another's don't take back; a pass of its own, or an end, does."""
    known, serving = Suspensions(), {"tone": "v1", "wit": "v1"}

    def found(verdict: CheckVerdict, day: int, vertical: str, judge: str = "tone", **more: Any) -> None:
        of = {"reason": CheckedFor.INVERSION, "reference": f"{vertical}-{day}", "vertical": vertical, "judge_id": judge}
        known.add(record(verdict, day, **of | more))

    found(SUSPENDED, 1, "receipts")
    found(SUSPENDED, 2, "shopping")
    found(SUSPENDED, 3, "shopping", judge="wit")
    assert known.inverted(serving, TODAY) == {"receipts": 1, "shopping": 2}
    found(PASSED, 4, "shopping")
    assert known.inverted(serving, TODAY) == {"receipts": 1, "shopping": 1}
    found(SUSPENDED, 5, "travel", judge="wit", until=date(2026, 11, 6))
    assert known.inverted(serving, date(2026, 11, 6)) == {"receipts": 1, "shopping": 1, "travel": 1}
    assert known.inverted(serving, date(2026, 11, 7)) == {"receipts": 1, "shopping": 1}
    assert known.inverted({"wit": "v1"}, date(2026, 11, 7)) == {"shopping": 1}, "a judge that no longer serves"


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


def of(vertical: str, verdict: CheckVerdict, day: int, version: str = "v1") -> StandingRecord:
    found = held(verdict, day, version, f"{vertical}-{day}-{version}")
    return found.model_copy(update={"vertical": vertical})


def test_pf9_fr10_what_one_verticals_people_found_those_of_another_do_not_take_back() -> None:
    inverted = of("shop", SUSPENDED, 1)
    assert why(inverted, of("travel", PASSED, 2)) != ""
    assert why(inverted, of("shop", PASSED, 2)) == ""
    assert why(inverted, of("travel", PASSED, 2, "v2"), version="v2") != "", "nor of a new version"
    assert why(inverted, of("travel", PASSED, 2, "v2"), of("shop", PASSED, 3, "v2"), version="v2") == ""


def test_people_of_no_vertical_speak_for_all_and_any_answers_them() -> None:
    assert why(of("", SUSPENDED, 1), of("travel", PASSED, 2)) == ""
    assert why(of("shop", SUSPENDED, 1), of("", PASSED, 2)) == ""
    assert why(of("travel", PASSED, 1), of("", SUSPENDED, 2), of("shop", PASSED, 3)) == ""
    assert why(of("travel", PASSED, 1), of("", SUSPENDED, 2)) != ""


def test_when_a_version_was_last_held_is_told_by_vertical() -> None:
    known = Suspensions()
    for one in (of("shop", UNDECIDED, 1), of("travel", PASSED, 2), of("shop", PASSED, 3, "v2")):
        known.add(one)
    (first,) = (one for one in [known.last_held("tone", "v1", "shop")] if one is not None)
    assert first.at == datetime(2026, 11, 1, tzinfo=UTC)
    assert known.last_held("tone", "v3", "shop") is None
    known.add(of("", PASSED, 4))
    (last,) = (one for one in [known.last_held("tone", "v1", "shop")] if one is not None)
    assert last.at == datetime(2026, 11, 4, tzinfo=UTC)
