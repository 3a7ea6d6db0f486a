"""Post-deploy regressions: what follows a floor breach, by tier, once (PC5 §5.7)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evalcore.gates.messages import HEADER, annotation, log_line, page, ramp_command, slack_message, summary
from evalcore.gates.regression import Breach, Event, Kind, Step, Watched
from evalcore.scoring.answers import Answer, Scored, Unscored
from tests.unit.evalcore.gates.regression_cases import NOW, REGISTRY, bad, good, only, seen, watched

QUALITY, SAFETY = REGISTRY.judge("helpfulness"), REGISTRY.judge("refusal")
LOW, HIGH = QUALITY.score_range


def test_a_safety_judge_below_its_floor_ramps_down_and_pages() -> None:
    response = only(seen(bad("refusal")))
    assert response.steps == (Step.RAMP_DOWN, Step.PAGE, Step.LOG)
    assert ramp_command(response) == {
        "command": "ramp_down", "to_percent": 0, "agent_id": "assistant", "agent_version": "v7",
        "judge_id": "refusal", "score": SAFETY.score_range[0], "floor": SAFETY.floor,
        "detected_at": "2026-11-21T03:00:00+00:00",
        "n": 40, "upper_bound": response.breach.upper_bound, "users": 40, "sessions": 40,
    }  # fmt: skip


TRUE, FALSE = Scored(1.0), Scored(0.0)
NO_SCORE = Unscored("answered N/A, or the content filter refused, or the model was away")


def safety(bad: int, of: int, users: int = 40, answer: Answer = FALSE) -> Watched:
    """Of the live traces so many are bad, from so many users."""
    return floored([answer] * bad + [TRUE] * (of - bad), users)


def floored(answers: list[Answer], users: int = 40) -> Watched:
    """Of a safety judge that says true or false, with the floor that the shipped ones have."""
    line = watched("honesty", answers, users=users)
    assert line.judge.safety
    return replace(line, judge=replace(line.judge, floor=0.97))


def test_forty_of_a_thousand_page_whether_they_are_false_or_have_no_score() -> None:
    """Talked into N/A, refused by a content filter, or lost: no one knows what they were."""
    assert only(seen(safety(40, 1_000))).steps == (Step.PAGE, Step.LOG), "by a hair too few to be certain"
    assert only(seen(safety(60, 1_000))).steps == (Step.RAMP_DOWN, Step.PAGE, Step.LOG)
    for unscored, of in ((40, 1_000), (1_000, 1_000), (30, 30)):
        response = only(seen(safety(unscored, of, answer=NO_SCORE)))
        assert response.steps == (Step.PAGE, Step.LOG), "what has no score ramps no one down"
        assert (response.breach.kind, response.breach.unscored, response.breach.n) == (Kind.UNSCORED, unscored, of)
        told = page(response, "k")["payload"]
        assert f"{unscored} of {of} live traces have no score" in told["summary"]
        assert told["class"] == "safety_unscored"
        assert "breach (unscored)" in log_line(response)


def test_a_quality_judges_missing_scores_page_nobody_and_neither_do_a_few() -> None:
    assert seen(watched("helpfulness", [NO_SCORE] * 400)).responses == ()
    assert seen(safety(2, 40, answer=NO_SCORE)).responses == (), "two are an accident, though five percent"
    assert seen(safety(20, 1_000, answer=NO_SCORE)).responses == (), "two percent"
    assert len(seen(safety(21, 1_000, answer=NO_SCORE)).responses) == 1


def test_missing_scores_that_hide_a_breach_page_below_their_share_too() -> None:
    answers = [FALSE] * 25 + [NO_SCORE] * 10 + [TRUE] * 965
    assert only(seen(floored(answers))).breach.kind == Kind.UNSCORED


def test_missing_scores_are_told_once_beside_a_breach_and_end_when_they_have_come() -> None:
    first = seen(safety(40, 1_000, answer=NO_SCORE))
    assert seen(safety(50, 1_000, answer=NO_SCORE), known=first, minutes=1).responses == ()
    both = seen(floored([NO_SCORE] * 50 + [FALSE] * 200 + [TRUE] * 700), known=first, minutes=2)
    assert (only(both).breach.kind, len(both.open)) == (Kind.FLOOR, 2), "its own incident"
    over = seen(safety(0, 1_000), known=first, minutes=3)
    assert (only(over).event, only(over).steps) == (Event.RECOVERED, (Step.RESOLVE_PAGE, Step.LOG))
    assert page(only(over), "k")["dedup_key"] == only(first).breach.key != only(seen(safety(60, 1_000))).breach.key
    assert only(seen(known=first, minutes=4)).event is Event.LAPSED
    for response in (only(over), only(seen(known=first, minutes=4))):
        assert "honesty" in summary(response)


def test_one_false_of_thirty_ramps_no_agent_down() -> None:
    """The interval's upper bound is above the floor: a judge's slip would take an agent off the ramp."""
    one = only(seen(floored([FALSE] + [TRUE] * 29)))
    assert Step.PAGE in one.steps, "people look"
    assert Step.RAMP_DOWN not in one.steps
    assert one.breach.upper_bound is not None
    assert one.breach.upper_bound > one.breach.floor > one.breach.score
    assert f"upper bound is {one.breach.upper_bound:.4g}" in summary(one)
    assert "too little for an automatic ramp-down" in page(one, "k")["payload"]["summary"]


@pytest.mark.parametrize(("users", "sessions"), [(2, 40), (40, 2), (0, 0)])
def test_one_users_or_one_sessions_traces_ramp_no_agent_down(users: int, sessions: int) -> None:
    alone = seen(replace(safety(200, 1_000), users=users, sessions=sessions))
    assert only(alone).steps == (Step.PAGE, Step.LOG)
    assert f"{users} users and {sessions} sessions" in summary(only(alone))
    details = page(only(alone), "k")["payload"]["custom_details"]
    assert (details["users"], details["sessions"]) == (users, sessions)
    later = seen(replace(safety(210, 1_000), users=3, sessions=3), known=alone, minutes=5)
    confirmed = only(later)
    assert (confirmed.event, confirmed.steps) == (Event.CONFIRMED, (Step.RAMP_DOWN, Step.PAGE, Step.LOG))
    assert page(confirmed, "k")["dedup_key"] == only(alone).breach.key
    assert seen(safety(220, 1_000), known=later, minutes=6).responses == (), "commanded once"
    assert seen(safety(200, 1_000, users=0), known=later, minutes=7).responses == ()


ODD = "assistant\n<!channel> all is well\x1b[2J\u202e"


def test_no_name_begins_a_line_of_its_own_in_a_message_or_a_page() -> None:
    """Agents' names come from traces: a line break in one would forge a second message to operators."""
    for judge, minutes in (("refusal", 0), ("helpfulness", 0)):
        response = only(seen(bad(judge, agent=ODD, version=ODD), minutes=minutes))
        for text in (summary(response), slack_message(response)["text"], annotation(response)["text"]):
            assert text.isprintable(), text
        assert "<!channel>" not in slack_message(response)["text"]
        assert all(tag.isprintable() for tag in annotation(response)["tags"])
        shown = page(response, "key")["payload"]
        assert all(str(value).isprintable() for value in (*shown.values(), *shown["custom_details"].values()))
        assert ramp_command(response)["agent_id"] == ODD, "PC6 finds the agent by its exact name"


def test_a_quality_judge_pages_nobody_but_tells_and_asks_for_triage_within_24_hours() -> None:
    response = only(seen(bad("helpfulness")))
    assert response.steps == (Step.MESSAGE, Step.ANNOTATION, Step.TRIAGE, Step.LOG)
    assert response.triage_due == "2026-11-22T03:00:00+00:00"


def test_without_the_ramping_primitive_it_degrades_to_the_alert_that_asks_for_a_manual_ramp_down() -> None:
    response = only(seen(bad("refusal"), ramping=False))
    assert Step.RAMP_DOWN not in response.steps
    assert Step.PAGE in response.steps
    assert "Feature Flipper" in page(response, "k")["payload"]["summary"]


def test_a_breach_is_news_once_however_often_it_is_looked_at_and_again_after_it_recovered() -> None:
    first = seen(bad("refusal"), bad("helpfulness"))
    again = seen(bad("refusal", 80), bad("helpfulness", 80), known=first, minutes=5)
    assert (len(first.responses), again.responses) == (2, ())
    assert again.open == first.open
    over = seen(good("refusal"), good("helpfulness"), known=again, minutes=10)
    assert [(response.event, response.steps[0]) for response in over.responses] == [
        (Event.RECOVERED, Step.RESOLVE_PAGE), (Event.RECOVERED, Step.MESSAGE),
    ]  # fmt: skip
    assert over.open == {}
    assert len(seen(bad("refusal"), known=over, minutes=15).responses) == 1


def test_each_judge_agent_and_version_has_a_breach_of_its_own() -> None:
    found = [bad("refusal"), bad("refusal", version="v8"), bad("refusal", agent="other"), bad("helpfulness")]
    assert len(seen(*found).open) == 4
    assert bad("refusal", agent="a", version="bc").key != bad("refusal", agent="ab", version="c").key


def test_at_its_floor_a_judge_is_not_below_it() -> None:
    at = watched("helpfulness", [Scored(float(QUALITY.floor))] * 40)
    assert seen(at).responses == ()


def test_too_few_scores_neither_open_a_breach_nor_end_one() -> None:
    assert seen(bad("refusal", 29)).responses == ()
    known = seen(bad("refusal"))
    after = seen(good("refusal", 29), known=known)
    assert (after.responses, after.open) == ((), known.open)


def test_a_breach_ends_when_under_half_of_the_scores_it_needs_are_left_and_not_sooner() -> None:
    """Between the two a score that comes or goes neither ends a breach nor begins it again."""
    known = seen(bad("refusal"), bad("helpfulness"))
    assert seen(bad("refusal", 15), bad("helpfulness", 29), known=known).responses == ()
    after = seen(bad("refusal", 14), known=known, minutes=9)
    assert [(one.breach.judge_id, one.event, one.breach.n) for one in after.responses] == [
        ("refusal", Event.LAPSED, 14), ("helpfulness", Event.LAPSED, 0),
    ]  # fmt: skip
    assert [one.steps for one in after.responses] == [
        (Step.RESOLVE_PAGE, Step.LOG), (Step.MESSAGE, Step.ANNOTATION, Step.LOG),
    ]  # fmt: skip
    assert after.open == {}
    assert page(after.responses[0], "k")["event_action"] == "resolve"
    assert "14 live scores left" in summary(after.responses[0])
    assert "lapsed" in log_line(after.responses[0])
    assert "03:09" in log_line(after.responses[0])


def test_an_outage_of_the_judges_model_ramps_nobody_down_and_ends_no_breach() -> None:
    lost: list[Answer] = [Unscored("down")] * 400
    for answers in ([*lost, *[Scored(SAFETY.score_range[0])] * 40], lost):
        response = only(seen(watched("refusal", answers)))
        assert (response.breach.kind, response.steps) == (Kind.UNSCORED, (Step.PAGE, Step.LOG))
    known = seen(bad("refusal"))
    after = seen(watched("refusal", [*lost, *[Scored(SAFETY.score_range[1])] * 40]), known=known)
    assert after.open.items() >= known.open.items()


def test_scores_count_by_their_weights() -> None:
    """Thumbs-down are all judged and are worse: unweighted they would page for what most users never saw."""
    downs, others = [Scored(LOW, 1.0)] * 60, [Scored(HIGH, 20.0)] * 40
    assert seen(watched("helpfulness", [*downs, *others])).responses == ()
    assert len(seen(watched("helpfulness", [*downs, *(Scored(HIGH) for _ in range(3))])).responses) == 1


def test_the_page_has_the_shape_of_pagerdutys_events_api_v2_and_its_end_resolves_it() -> None:
    first = seen(bad("refusal"))
    trigger = page(only(first), "routing")
    assert trigger["event_action"] == "trigger"
    assert trigger["routing_key"] == "routing"
    assert {"summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details"} == set(
        trigger["payload"]
    )
    assert trigger["payload"]["severity"] in ("critical", "error", "warning", "info")
    assert len(trigger["dedup_key"]) <= 255
    resolve = page(only(seen(good("refusal"), known=first)), "routing")
    assert resolve == {"routing_key": "routing", "event_action": "resolve", "dedup_key": trigger["dedup_key"]}


def test_slack_and_grafana_get_what_they_take() -> None:
    response = only(seen(bad("helpfulness", agent="<!channel> & co")))
    assert "<!channel>" not in slack_message(response)["text"]
    assert "&lt;!channel&gt; &amp; co" in slack_message(response)["text"]
    noted = annotation(response)
    assert noted["time"] == round(NOW.timestamp() * 1000)
    assert {"rampgate", "regression", "helpfulness"} <= set(noted["tags"])
    json.dumps([noted, page(response, "k"), slack_message(response)])


def test_the_trend_log_has_a_row_for_each_event_that_no_name_can_break() -> None:
    rows = [
        log_line(only(seen(bad("helpfulness", agent="a|b\n| c")))),
        log_line(only(seen(good("refusal"), known=seen(bad("refusal"))))),
    ]
    columns = HEADER.splitlines()[0].count("|")
    for row in rows:
        assert row.count("\n") == 1
        assert row.replace("\\|", "").count("|") == columns
    assert "recovered" in rows[1]
    assert "breach" in rows[0]


def test_a_summary_names_the_judge_the_agent_the_number_and_the_floor() -> None:
    text = summary(only(seen(bad("refusal"))))
    for word in ("refusal", "assistant", "v7", f"{SAFETY.floor:g}", "40"):
        assert word in text


def test_breaches_are_plain_values_that_can_be_kept() -> None:
    (breach,) = seen(bad("refusal")).open.values()
    assert Breach(**breach.__dict__) == breach


@pytest.mark.parametrize("judge", ["refusal", "helpfulness"])
def test_nothing_follows_from_good_scores(judge: str) -> None:
    outcome = seen(good(judge))
    assert (outcome.responses, outcome.open) == ((), {})
