"""Live traces: who is judged, with which weight, what is written; nothing is judged twice (PC5 §5.2, FR-11)."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import traces as trace_codec
from agents.live.judging import STAGE
from agents.own_calls import OWN_AGENT, SIGNATURE, own_key, signature
from agents.ports import Refusal, Unavailable
from evalcore.gates.limits import aggregate
from evalcore.registry.registry import Judge
from evalcore.scoring.answers import Scored, collect
from evalcore.scoring.applicability import chance, chosen, judges_of, weight
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import Failure
from evalcore.scoring.sampling import share
from schemas.dead_letter_answers import DeadLetterState, parse_dead_letter
from schemas.dead_letters import KEYLESS
from schemas.outcomes import Cause, Kind
from streams.dead_letters.states import status_of
from tests.unit.agents.builders import NOW, Rec, thumb
from tests.unit.agents.live.live_rig import RARE, REGISTRY, Rig, Willing, live_trace
from tests.unit.evalcore.scoring.scoring_rig import down


def with_rate(judge: Judge, rate: float) -> Judge:
    return replace(judge, rule=judge.rule.model_copy(update={"sampling_rate": rate}))


@given(
    st.floats(0.02, 1.0),
    st.integers(0, 2**32),
    st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=3),
)
def test_a_weighted_sum_of_live_scores_is_the_whole_traffics_whatever_the_rate(
    rate: float, seed: int, turns: list[tuple[int, bool]]
) -> None:
    """Unbiased, exactly: over all the shares that a trace's hash can have, each turn counts once."""
    judge, grid = with_rate(RARE, rate), 500
    shares = [(step + 0.5) / grid for step in range(grid)]
    for value, voted_down in turns:
        counted = [
            value * weight(judge, voted_down) for one in shares if chosen([judge], {"metadata": {}}, one, voted_down)
        ]
        assert sum(counted) / grid == pytest.approx(value, rel=2 / (rate * grid))


def test_the_weighted_mean_is_unbiased_where_thumbs_down_are_scored_worse_and_the_plain_mean_is_not() -> None:
    judge, draw = with_rate(RARE, 0.1), random.Random(7)
    whole = [(1.0, True)] * 150 + [(5.0, False)] * 2_850
    truth = sum(value for value, _ in whole) / len(whole)
    weighted, plain = [], []
    for _ in range(60):
        taken = [
            Scored(value, weight(judge, voted_down))
            for value, voted_down in whole
            if chosen([judge], {"metadata": {}}, share(draw.randbytes(16)), voted_down)
        ]
        mean = aggregate(collect(taken, judge.score_range), judge.score_range, False).worst
        assert mean is not None
        weighted.append(mean)
        plain.append(sum(one.value for one in taken) / len(taken))
    assert sum(weighted) / len(weighted) == pytest.approx(truth, abs=0.02)
    assert sum(plain) / len(plain) < truth - 0.5


def test_a_safety_judge_and_a_thumbs_down_are_certain_and_a_rate_of_zero_keeps_a_judge_out() -> None:
    assert all(chance(judge, False) == 1.0 for judge in REGISTRY.all() if judge.safety)
    assert chance(RARE, True) == 1.0
    assert chance(RARE, False) == pytest.approx(0.3)
    assert chosen([with_rate(RARE, 0.0)], {"metadata": {}}, 0.0, True) == []


def test_a_trace_is_judged_by_its_categorys_judges_and_without_a_known_one_by_all_that_fire() -> None:
    category = next(iter(REGISTRY.category_files))
    own = judges_of(REGISTRY, {"metadata": {"category": category}})
    assert own == REGISTRY.category(category)
    everyone = {judge.id for judge in REGISTRY.all() if judge.fires}
    for metadata in ({}, {"category": "nobody_knows"}, {"category": None, "vertical": 7}, "odd"):
        assert {judge.id for judge in judges_of(REGISTRY, {"metadata": metadata})} == everyone


async def test_a_sampled_trace_is_scored_under_each_rules_score_name_with_the_reason() -> None:
    rig, event = Rig(), live_trace()
    await rig.traces(event)
    scored = rig.written(event)
    assert set(scored) >= {"helpfulness", "refusal"}
    assert {write.label for write in rig.world.scores.log} == {"fine"}
    assert {write.project for write in rig.world.scores.log} == {"project"}
    assert rig.world.turn("r").judged == 1, "coverage counts it as judged"


async def test_a_trace_the_rate_passes_over_is_scored_by_those_that_score_every_trace() -> None:
    rig, event = Rig(), live_trace(sampled=False)
    await rig.traces(event)
    assert "helpfulness" not in rig.written(event)
    assert set(rig.written(event)) >= {"refusal"}


async def test_a_trace_posted_twice_is_judged_once_and_not_at_its_start() -> None:
    rig, event = Rig(), live_trace()
    await rig.traces({**event, "ended_at": None})
    assert rig.model.calls == []
    await rig.traces(event)
    asked = len(rig.model.calls)
    assert asked
    rig.cache = MemoryScoreCache()  # an emptied cache must not matter either
    await rig.traces({**event, "output": {"messages": [{"content": "another text"}]}})
    assert len(rig.model.calls) == asked


async def test_a_thumbs_down_later_asks_the_judges_that_have_not_scored_the_trace() -> None:
    rig, event = Rig(), live_trace(sampled=False)
    await rig.traces(event)
    asked = len(rig.model.calls)
    rig.cache = MemoryScoreCache()  # whoever scored it is not asked again, cached or not
    assert await rig.thumbs(thumb("r")) == []
    assert "helpfulness" in rig.written(event)
    assert len(rig.model.calls) == asked + 1
    await rig.thumbs(thumb("r", at=NOW + 5_000))
    assert len(rig.model.calls) == asked + 1, "once"


async def test_a_thumbs_down_that_came_before_is_judged_with_its_trace() -> None:
    rig, event = Rig(), live_trace(sampled=False)
    waiting = await rig.thumbs(thumb("r"))
    assert len(waiting) == 1, "to be handed in again"
    await rig.traces(event)
    assert "helpfulness" in rig.written(event)
    asked = len(rig.model.calls)
    assert await rig.judging().thumbs(waiting) == []
    assert len(rig.model.calls) == asked


async def test_thumbs_up_and_thumbs_taken_back_are_left_to_the_sampling_rate() -> None:
    rig, event = Rig(), live_trace(sampled=False)
    await rig.traces(event)
    asked = len(rig.model.calls)
    assert await rig.thumbs(thumb("r", "up")) == []
    down_then_none = [thumb("r", "down", at=NOW + 1), thumb("r", None, at=NOW + 2)]
    assert await rig.thumbs(*down_then_none) == []
    assert len(rig.model.calls) == asked


async def test_after_redis_was_emptied_a_thumbs_down_asks_nobody_whose_score_opik_has() -> None:
    rig, event = Rig(), live_trace()
    await rig.traces(event)
    asked = len(rig.model.calls)
    rig.world.lose_state()
    rig.cache = MemoryScoreCache()  # it was there too
    await rig.world.drain()
    held = [{"name": name, "value": value} for name, value in rig.written(event).items()]
    rig.in_opik[event["trace_id"]] = {**event, "feedback_scores": held}
    assert await rig.thumbs(thumb("r")) == []
    assert len(rig.model.calls) == asked


KEY = own_key("the installation's seal key")


def signed(event: dict[str, Any], key: bytes = KEY, of: str = "") -> dict[str, Any]:
    """The event as of one of our own calls. `of`: the trace whose signature it bears, its own by default."""
    made = signature(key, uuid.UUID(of or event["trace_id"]).bytes)
    return event | {"metadata": {**event["metadata"], "agent_id": OWN_AGENT, SIGNATURE: made}}


async def test_our_own_judge_calls_are_never_judged() -> None:
    rig = Rig(own_key=KEY)
    await rig.traces(signed(live_trace()))
    assert (rig.model.calls, rig.escapes) == ([], [])


@pytest.mark.parametrize("key", [KEY, b""])
@pytest.mark.parametrize("how", ["name only", "another key", "another trace's", "keyless", "no text"])
async def test_who_only_claims_to_be_our_own_judges_is_judged_and_counted(how: str, key: bytes) -> None:
    """Without a seal key no one can prove it: all are judged."""
    rig, event = Rig(own_key=key), live_trace()
    claims: dict[str, Any] = {
        "name only": event | {"metadata": {**event["metadata"], "agent_id": OWN_AGENT}},
        "another key": signed(event, own_key("guessed")),
        "another trace's": signed(event, of=live_trace("other")["trace_id"]),
        "keyless": signed(event, b""),
        "no text": event | {"metadata": {**event["metadata"], "agent_id": OWN_AGENT, SIGNATURE: 7}},
    }
    await rig.traces(claims[how])
    assert rig.model.calls
    assert rig.escapes == ["unsigned"]
    assert rig.world.turn("r").trace, "and joined"


async def test_traces_that_live_judging_passes_over_by_what_they_claim_are_counted_by_reason() -> None:
    rig = Rig()
    rig.left = frozenset({"shopping"})
    old, left, open_ = live_trace("old"), live_trace("left", vertical="shopping"), live_trace("open")
    old["trace_id"] = str(uuid.uuid4())
    await rig.traces(old, left, {**open_, "ended_at": None}, live_trace("fine"))
    assert sorted(rig.escapes) == ["left_to_opik", "not_uuid7"]


async def test_a_vertical_whose_live_judge_is_opik_is_left_alone_also_for_its_thumbs() -> None:
    rig, event = Rig(), live_trace(vertical="shopping")
    rig.left = frozenset({"shopping"})
    await rig.traces(event)
    await rig.thumbs(thumb("r"))
    assert rig.model.calls == []
    assert rig.written(event) == {}


async def test_a_trace_posted_without_its_text_is_read_from_opik() -> None:
    rig, event = Rig(), live_trace()
    bare = {name: value for name, value in event.items() if name not in ("input", "output")}
    rig.in_opik[event["trace_id"]] = event
    await rig.traces(bare)
    assert "helpfulness" in rig.written(event)


def standing(rig: Rig, stage: str) -> DeadLetterState:
    """How the letter about a trace stands, once its turn has the trace; `stage` is what made it."""
    made = replace(rig.world.letters.letters[0], stage=stage)
    key, value, headers = made.encode(1_000_000)
    record = Rec(value, "rampgate.dead-letters", key=key, headers=tuple((n, c or b"") for n, c in headers))
    decoded = trace_codec.decode([made.record], rig.world.clock.ms, rig.world.policy)
    turns = {"r": rig.world.turn("r")}
    return status_of(parse_dead_letter(record, KEYLESS), trace_codec.AGENT, decoded, turns, "").state


async def test_a_model_that_is_down_makes_a_dead_letter_and_its_replay_is_judged() -> None:
    rig, event = Rig(answers=down(Failure.UNAVAILABLE)), live_trace()
    await rig.traces(event)
    assert rig.world.causes() == [Cause.JUDGE_UNAVAILABLE]
    assert json.loads(rig.world.letters.letters[0].record.value or b"") == event
    assert rig.written(event) == {}
    assert standing(rig, "step") is DeadLetterState.RESOLVED, "the join has the trace"
    assert standing(rig, STAGE) is DeadLetterState.OPEN, "what judges owe is open, and may be replayed"
    rig.model = Willing()
    await rig.traces(event)
    assert "helpfulness" in rig.written(event)


async def test_an_answer_that_is_no_score_writes_nothing_and_makes_no_letter() -> None:
    rig, event = Rig(answers="I would say four."), live_trace()
    await rig.traces(event)
    assert rig.written(event) == {}
    assert rig.world.letters.letters == []


async def test_not_applicable_writes_no_score() -> None:
    rig, event = Rig(answers='{"score": "N/A", "reason": "none of mine"}'), live_trace()
    await rig.traces(event)
    assert rig.written(event) == {}


async def test_a_score_that_opik_refuses_becomes_a_letter_and_takes_no_other_trace_with_it() -> None:
    rig, bad, good = Rig(), live_trace("bad"), live_trace("good")
    rig.world.scores.refuse = lambda write: (
        Refusal(Cause.OPIK_REJECTED, "no") if write.trace_id == bad["trace_id"] else None
    )
    await rig.traces(bad, good)
    assert rig.world.causes() == [Cause.OPIK_REJECTED]
    assert "helpfulness" in rig.written(good)


async def test_without_a_registry_it_waits() -> None:
    rig = Rig()
    rig.registry = None
    with pytest.raises(Unavailable, match="registry"):
        await rig.judging().traces([])


@pytest.mark.parametrize(("agent", "judged"), [(OWN_AGENT, False), ("assistant", True)])
async def test_a_trace_of_our_own_judges_is_not_judged_though_its_turn_was_voted_down(agent: str, judged: bool) -> None:
    """Its calls would be traced, voted on and judged without end."""
    rig, event = Rig(own_key=KEY), live_trace()
    await rig.world.tell(Kind.TRACE, event)
    rig.in_opik[event["trace_id"]] = signed(event) if agent == OWN_AGENT else event
    assert await rig.thumbs(thumb("r", "down")) == []
    assert bool(rig.model.calls) is judged
