"""PF-9 §5.10's view of a turn, put together from Opik's trace and the join's state."""

from __future__ import annotations

from typing import Any

import pytest

from agents.codec import TraceFacts
from agents.join.turn import Signal, Turn
from agents.join.versions import Came, Standing
from agents.join.versions import store as store_versions
from agents.keys import POOL_EDGE, REFUSED, TURN_POOL, UNNAMED, names_of, pool_place, spelled
from agents.ports import Change, Places
from evalcore.scoring.sampling import PooledTurn, turn_hash
from streams.queries.turn_view import TurnNotFound, joined, view_turn
from tests.unit.streams.queries.viewed_turns import TRACE, Opik, store_with


def score(name: str, value: float, source: str = "sdk", reason: str | None = None) -> dict[str, Any]:
    return {"name": name, "value": value, "source": source, "reason": reason}


def test_signals_and_judges_are_told_apart() -> None:
    scores = [
        score("user_signal_thumbs", -1),
        score("user_signal_reroll", 1),
        score("thumbs", -1),
        score("tone", 0.4, reason="curt"),
        score("annotated", 5, source="ui"),
        score("b", 1, source="online_scoring"),
    ]
    view = joined("r", Turn(), "p", {"id": "t", "feedback_scores": scores, "metadata": {"vertical": "v"}})
    assert view.feedback_scores == {"user_signal_thumbs": -1.0, "user_signal_reroll": 1.0}
    assert [(judge.judge_id, judge.score, judge.reason) for judge in view.judge_scores] == [
        ("b", 1.0, None),
        ("tone", 0.4, "curt"),
    ]


@pytest.mark.parametrize("metadata", [None, "text", [], 3, {"frames": "no list", "vertical": 7, "user_id": {"a": 1}}])
def test_metadata_of_any_shape_makes_a_view(metadata: Any) -> None:
    turn = Turn(vertical="from the event", sub_agent="s", category="c")
    trace = {"id": "t", "metadata": metadata, "thread_id": "th", "start_time": "2026-01-01T00:00:00Z"}
    view = joined("r", turn, "p", trace)
    assert view.vertical == ("7" if isinstance(metadata, dict) else "from the event")
    assert (view.sub_agent, view.category, view.session_id, view.user_id) == ("s", "c", "th", None)
    assert view.timestamp == "2026-01-01T00:00:00Z"
    assert view.frames == []
    assert view.trace["project_name"] == "p"


async def test_a_known_trace_costs_no_search() -> None:
    opik = Opik({str(TRACE): {"id": str(TRACE)}}, {})
    view = await view_turn("r", store_with(Turn(trace=TRACE.bytes, project="p")), opik, {})
    assert view.trace == {"id": str(TRACE), "project_name": "p"}
    assert opik.searches == 0


@pytest.mark.parametrize(
    ("came", "names", "said"),
    [
        (Came.NOT_COME, names_of("a", "v1"), "record_not_come"),
        (Came.DEAD, names_of("a", "v1"), "dead_lettered"),
        (Came.RUNNING, names_of("a", "v1"), "not_ended"),
        (Came.POOLED, names_of("a", "v1"), "a loss"),
        (Came.POOLED, UNNAMED, "names no agent"),
        (Came.POOLED, REFUSED, "too many new ones"),
    ],
)
async def test_a_turn_says_why_it_is_in_no_pool(came: int, names: bytes, said: str) -> None:
    turn = Turn(trace=TRACE.bytes, project="p", time=7_200_000)
    store_versions(turn, [Standing(names, came, True, 7_200_000, "")])
    trace = {"id": str(TRACE), "metadata": {"agent_id": "a", "agent_version": "v1"}}
    (pool,) = (await view_turn("r", store_with(turn), Opik({str(TRACE): trace}, {}), {})).pools
    assert not pool.pooled
    assert said in (pool.why or "")
    assert pool.agent_version == ("v1" if names == names_of("a", "v1") else None)


async def test_a_turn_says_that_it_is_in_its_versions_pool_or_beyond_the_edge() -> None:
    turn = Turn(trace=TRACE.bytes, project="p", time=7_200_000)
    names = names_of("a", "v1")
    store_versions(turn, [Standing(names, Came.POOLED, True, 7_200_000, "")])
    store, place = store_with(turn), pool_place(None, spelled(names), 2)
    member = PooledTurn(turn_hash("r", names), 7_200_000, TRACE.bytes, 0, 5).pack()
    opik = Opik({str(TRACE): {"id": str(TRACE), "metadata": {"agent_id": "a", "agent_version": "v1"}}}, {})

    async def said() -> tuple[bool, str]:
        (pool,) = (await view_turn("r", store, opik, {})).pools
        return pool.pooled, pool.why or ""

    places = Places(POOL_EDGE.key(*place), 2**45, 600, {turn_hash("r", names): (False, member)})
    await store.apply(Change(places={TURN_POOL.key(*place): places}))
    assert await said() == (True, "")
    await store.apply(Change(counts={POOL_EDGE.key(*place): (2**45, {"edge": 1})}))
    pooled, why = await said()
    assert not pooled
    assert why.startswith("beyond_pool")


async def test_a_trace_the_state_does_not_know_is_looked_up() -> None:
    facts = TraceFacts("r", TRACE.bytes, "elsewhere", "v", "", "", 1, 2, False)
    opik = Opik({str(TRACE): {"id": str(TRACE)}}, {"r": facts})
    view = await view_turn("r", store_with(None), opik, {})
    assert view.trace["project_name"] == "elsewhere"


@pytest.mark.parametrize(
    ("turn", "told"),
    [
        (None, "no event has told"),
        (Turn(thumbs=Signal(1, 5)), "no trace has come"),
        (Turn(trace=TRACE.bytes), "Opik does not have"),
    ],
)
async def test_an_unknown_turn_says_what_is_known_of_it(turn: Turn | None, told: str) -> None:
    with pytest.raises(TurnNotFound, match=told):
        await view_turn("r", store_with(turn), Opik({}, {}), {})
