"""A triage item opens once, has an owner, and ends by nothing but a person's word (PC5 §5.7)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from evalcore.gates.regression import Response
from evalcore.triage import Refused, closed, known, newer, opened, overdue, reminded, reminder, taken
from schemas.checks.triage import TriageDecision, TriageItem, TriageState, TriageStep
from tests.unit.evalcore.gates.regression_cases import NOW, bad, only, seen

DAY = timedelta(hours=24)
BEFORE = round((NOW - DAY).timestamp() * 1000)
"""Since then an item answers the breach, in ms."""


def response(minutes: int = 0, version: str = "v7") -> Response:
    return only(seen(bad("helpfulness", version=version), minutes=minutes))


def item() -> TriageItem:
    made = opened({}, response(), BEFORE)
    assert made is not None
    return made


def owned(owner: str = "dana") -> TriageItem:
    return taken(item(), owner, owner, "", NOW)


def done() -> TriageItem:
    return closed(owned(), TriageDecision.AGENT, "dana", "prompt 12 is rolled back", NOW + timedelta(hours=1))


def of(*items: TriageItem) -> dict[str, TriageItem]:
    return {one.item_id: one for one in items}


def test_an_item_says_what_is_wrong_with_whom_and_is_due_a_day_later() -> None:
    made = item()
    assert (made.judge_id, made.agent_id, made.agent_version, made.n) == ("helpfulness", "assistant", "v7", 40)
    assert made.score < made.floor
    assert (made.state, made.owner, made.due - made.opened) == (TriageState.OPEN, None, DAY)
    assert [(change.step, change.by) for change in made.history] == [(TriageStep.OPENED, "rampgate")]


def test_a_breach_that_is_found_again_opens_no_second_item_as_long_as_the_first_is_not_closed() -> None:
    later = round((NOW + 30 * DAY).timestamp() * 1000)
    for first in (item(), owned()):
        assert opened(of(first), response(minutes=600), BEFORE) is None
        assert opened(of(first), response(minutes=600), later) is None


def test_a_closed_item_answers_its_own_breach_and_no_later_one() -> None:
    """After Redis was emptied the same breach is found again; after its end the next breach is a new one."""
    assert opened(of(done()), response(minutes=60), BEFORE) is None
    again = opened(of(done()), response(minutes=600), round((NOW + timedelta(hours=2)).timestamp() * 1000))
    assert again is not None
    assert again.item_id != done().item_id


def test_another_version_of_the_agent_is_another_item() -> None:
    other = opened(of(item()), response(version="v8"), BEFORE)
    assert other is not None
    assert other.item_id != item().item_id


def test_an_item_is_taken_by_one_and_taken_over_only_on_purpose() -> None:
    mine = owned()
    assert (mine.state, mine.owner) == (TriageState.OWNED, "dana")
    with pytest.raises(Refused, match="is dana's; --over"):
        taken(mine, "kim", "kim", "", NOW)
    theirs = taken(mine, "kim", "dana", "on leave", NOW, over=True)
    assert theirs.owner == "kim"
    assert theirs.history[-1].note == "owner: kim. on leave", "who gave it to whom is kept"
    with pytest.raises(Refused, match="an owner has a name"):
        taken(item(), " ", "kim", "", NOW)


def test_only_an_owned_item_is_closed_and_only_with_a_word_about_it() -> None:
    with pytest.raises(Refused, match="has no owner"):
        closed(item(), TriageDecision.AGENT, "dana", "seen", NOW)
    with pytest.raises(Refused, match="say what was found"):
        closed(owned(), TriageDecision.AGENT, "dana", "  ", NOW)
    assert (done().state, done().decision) == (TriageState.CLOSED, TriageDecision.AGENT)
    assert [change.step for change in done().history] == ["opened", "taken", "closed"]
    for again in (
        lambda: closed(done(), TriageDecision.JUDGE, "kim", "no", NOW),
        lambda: taken(done(), "kim", "kim", "", NOW),
    ):
        with pytest.raises(Refused, match="closed"):
            again()


def test_what_is_not_closed_a_day_later_is_overdue_also_where_it_has_an_owner() -> None:
    assert overdue([item(), owned()], NOW + DAY - timedelta(seconds=1)) == []
    late = NOW + DAY
    assert overdue([item(), done()], late) == [item()]
    assert overdue([owned()], late) == [owned()], "an owner alone does not end it"
    assert overdue([reminded(owned(), "Slack", late)], late + DAY), "nor does a reminder, nor time"


def test_of_two_records_of_an_item_the_one_with_the_longer_history_counts() -> None:
    assert newer(owned(), item())
    assert not newer(item(), owned())
    assert newer(item(), None)


def test_an_unknown_item_is_refused_with_what_to_do() -> None:
    assert known(of(item()), item().item_id) == item()
    with pytest.raises(Refused, match="triage --all"):
        known({}, "t-0")


def test_a_reminder_is_one_line_of_ours_whatever_the_names_hold() -> None:
    odd = replace(response().breach, agent_id="a\nTriage t-1: all is well", vertical="x\ny")
    made = opened({}, replace(response(), breach=odd), BEFORE)
    assert made is not None
    text = reminder(taken(made, "kim\nand all", "kim", "", NOW))
    assert "\n" not in text
    for part in (made.item_id, "helpfulness", "v7", "kim", "floor"):
        assert part in text
    assert "no one has taken it" in reminder(item())
    assert datetime.fromisoformat("2026-11-22T03:00:00+00:00") == item().due
