"""Each live score is an event for PS-5: never lost, the same when it comes again, with no text of a user (PC5 §9.4)."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agents.keys import LIVE_MARK
from agents.ports import Refusal, Unavailable
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import Failure
from schemas.outcomes import Cause
from schemas.publish.contracts import schema
from schemas.wire_forms import ScoreEvent
from tests.unit.agents.builders import thumb
from tests.unit.agents.live.live_rig import REGISTRY, Otherwise, Rig, Willing, live_trace
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.scoring.scoring_rig import down


def by_judge(rig: Rig) -> dict[str, ScoreEvent]:
    return {event["judge_id"]: event for event in rig.events.distinct().values()}


def marked(rig: Rig) -> list[str]:
    return [key for key in rig.world.store.values if key.startswith(LIVE_MARK.prefix)]


async def test_pc5_9_4_each_live_score_is_an_event_of_the_published_form() -> None:
    rig, event = Rig(), live_trace(vertical="receipts")
    event["metadata"] |= {"agent_id": "assistant", "agent_version": "2.3.0"}
    await rig.traces(event)
    found = by_judge(rig)
    said = {REGISTRY.judge(name).score_name: one["score"] for name, one in found.items()}
    assert said == rig.written(event), "what Opik has"
    assert len(found) == len(rig.events.events) == len(rig.model.calls)
    for name, one in found.items():
        Draft202012Validator(schema("judge-score")).validate(one)
        judge = REGISTRY.judge(name, "receipts")
        assert {field: value for field, value in one.items() if field not in ("event_id", "score", "at")} == {
            "trace_id": event["trace_id"], "response_id": "r", "agent_id": "assistant", "agent_version": "2.3.0",
            "vertical": "receipts", "judge_id": name, "judge_version": judge.version, "source": "live",
        }  # fmt: skip


async def test_no_mark_is_set_and_nothing_is_settled_before_the_events_are_durable() -> None:
    rig, event = Rig(), live_trace()
    rig.events.down = True
    with pytest.raises(Unavailable):
        await rig.traces(event)
    assert marked(rig) == []
    assert rig.world.letters.letters == []
    rig.events.down = False
    await rig.traces(event)
    assert by_judge(rig)
    assert marked(rig)


async def test_what_is_judged_again_because_it_was_not_settled_has_the_same_events() -> None:
    """As where a worker is killed after it sent them; the model need not even say the same."""
    rig, event = Rig(), live_trace()
    sent = rig.world.send("trace", event)
    await rig.world.run("trace")
    rig.world.scores.refuse = lambda write: Refusal(Cause.OPIK_UNAVAILABLE, "away")  # so nothing is marked
    await rig.judging().traces(sent)
    once = rig.events.distinct()
    rig.cache = MemoryScoreCache()
    rig.model = Otherwise()
    rig.world.wait(1_000)
    await rig.judging().traces(sent)
    assert rig.events.distinct().keys() == once.keys()
    assert Counter(one["event_id"] for one in rig.events.events) == dict.fromkeys(once, 2)


async def test_a_later_thumbs_down_adds_the_events_of_the_judges_it_asks() -> None:
    rig, event = Rig(), live_trace(sampled=False)
    await rig.traces(event)
    before = by_judge(rig)
    await rig.thumbs(thumb("r"))
    assert by_judge(rig).keys() - before.keys() == {"helpfulness"}
    assert len(rig.events.events) == len(before) + 1


async def test_an_outage_is_told_and_does_not_stand_in_the_way_of_the_score_that_a_replay_brings() -> None:
    rig, event = Rig(answers=down(Failure.UNAVAILABLE)), live_trace()
    await rig.traces(event)
    missing = rig.events.distinct()
    assert all((one["score"], one.get("unscored"), "na" in one) == (None, True, False) for one in missing.values())
    rig.model = Willing()
    await rig.traces(event)
    scored = rig.events.distinct().keys() - missing.keys()
    assert len(scored) == len(missing) > 0
    assert all(rig.events.distinct()[one]["score"] is not None for one in scored)


async def test_not_applicable_is_an_answer_where_the_rule_allows_it_and_unscored_where_it_does_not() -> None:
    rig = Rig(answers='{"score": "N/A", "reason": "none of mine"}')
    await rig.traces(live_trace())
    for one in rig.events.events:
        allowed = REGISTRY.judge(one["judge_id"]).rule.takes_na
        assert (one["score"], "na" in one, "unscored" in one) == (None, allowed, not allowed)


async def test_a_dimensions_score_is_an_event_of_its_own() -> None:
    registry = built({"rules/helpfulness.yaml": "{sampling_rate: 1, dimensions: {tone: {description: T}}}"})
    rig = Rig(registry, answers='{"score": 4, "reason": "fine", "dimensions": {"tone": 2}}')
    await rig.traces(live_trace())
    own = [one for one in rig.events.events if one["judge_id"] == "helpfulness"]
    assert [one.get("dimension") for one in own] == [None, "tone"]
    assert len({one["event_id"] for one in own}) == 2


@pytest.mark.parametrize("name", ["x" * 2_000_000, "a\nb", "\x00", 7, None, ["list"]])
async def test_whatever_a_trace_calls_its_agent_the_event_fits_into_a_record_and_quotes_no_text(name: Any) -> None:
    rig, event = Rig(), live_trace()
    event["metadata"] |= {"agent_id": name, "agent_version": name}
    event["input"] = {"messages": [{"content": "canary@example.org"}]}
    rig.in_opik[event["trace_id"]] = event
    await rig.world.tell("trace", live_trace() | {"trace_id": event["trace_id"]})
    await rig.thumbs(thumb("r"))
    assert rig.events.events
    for one in rig.events.events:
        assert len(json.dumps(one)) < 4_000
        assert "canary" not in json.dumps(one)
