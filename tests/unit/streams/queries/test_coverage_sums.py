"""Coverage and conservation are the counters' sums over exact windows (PF-9 FR-11, AC-11). PF-9 §5.10's view of a turn,
put together from Opik's trace and the join's state."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.codec import TraceFacts
from agents.join.counting import (
    BOTH,
    CLASSES,
    DAY,
    HOUR,
    MISSING_SIGNAL,
    MISSING_TRACE,
    NOWHERE,
    Counted,
    count_moves,
    count_tallies,
    move,
)
from agents.join.turn import Signal, Turn
from agents.join.versions import Came
from agents.join.versions import Standing as JoinStanding
from agents.join.versions import store as store_versions
from agents.keys import POOL_EDGE, REFUSED, TURN_POOL, UNNAMED, names_of, pool_place, spelled
from agents.ports import Change, Places
from evalcore.scoring.sampling import PooledTurn, turn_hash
from schemas.outcomes import Kind
from schemas.settings import parse_seconds
from streams.queries.conservation import balance, conservation
from streams.queries.coverage import coverage, pieces
from streams.queries.turn_view import TurnNotFound, joined, view_turn
from tests.memory_ports import ManualClock, MemoryStore
from tests.unit.streams.queries.viewed_turns import TRACE, Opik, store_with

LOOKBACK = 7 * DAY
WEEK = LOOKBACK // 1000
Standing = tuple[str, str, int]
"""(coverage class, vertical, ms)."""


async def store_of(standings: list[Standing], now: int) -> MemoryStore:
    store, change = MemoryStore(ManualClock(now)), Change()
    moves: dict[Counted, int] = {}
    for number, (name, vertical, time) in enumerate(standings):
        # Every second turn is also counted as evidence about an agent version, which coverage does not see.
        token = f"{CLASSES.index(name)}{'p1AAECAwQFBg' if number % 2 else ''}"
        move(moves, NOWHERE, [(vertical, token, time // 1000)])
    count_moves(change, moves, now, LOOKBACK)
    await store.apply(change)
    return store


async def counted(standings: list[Standing], now: int, window: int, vertical: str = "v") -> tuple[int, int, int]:
    answer = await coverage(await store_of(standings, now), now, window, ["v"], vertical)
    (row,) = answer.verticals
    return row.both_present, row.missing_trace, row.missing_signal


async def test_a_window_begins_after_its_start_and_ends_with_now() -> None:
    now = 500_000 * HOUR + 1_234_000
    times = {"at the start": now - 60_000, "a second in": now - 59_000, "now": now, "a second ahead": now + 1_000}
    for name, expected in {"at the start": 0, "a second in": 1, "now": 1, "a second ahead": 0}.items():
        assert await counted([(BOTH, "v", times[name])], now, 60) == (expected, 0, 0), name


@pytest.mark.parametrize("offset", [0, 1_000, 1_799_000, HOUR - 1_000])
@pytest.mark.parametrize("window", [1, 60, 3_599, 3_600, 3_601, 7_200, 86_400, WEEK])
async def test_edges_hold_wherever_in_the_hour_they_fall(offset: int, window: int) -> None:
    now = 500_000 * HOUR + offset
    inside = [now, now - 1000 * (window - 1)]
    outside = [now - 1000 * window, now + 1000]
    found = await counted([(MISSING_SIGNAL, "v", at) for at in inside + outside], now, window)
    assert found == (0, 0, 2)
    parts = pieces(now // 1000 - window + 1, now // 1000)
    assert sum(part.last - part.first + 1 for part in parts) == window
    assert len({part.key for part in parts}) == len(parts)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), window=st.integers(1, WEEK), second=st.integers(0, 3_599))
async def test_sums_agree_with_a_recount_of_the_turns(seed: int, window: int, second: int) -> None:
    draw = random.Random(seed)
    now = 500_000 * HOUR + second * 1000 + draw.randrange(1000)
    names = ["v", "w|x", "", "unknown", "both_present", "stranger"]
    turns: list[Standing] = [
        (draw.choice(CLASSES), draw.choice(names), now - draw.randrange(-DAY // 4, LOOKBACK + DAY)) for _ in range(200)
    ]
    # Near the edges, where mistakes live.
    turns += [(BOTH, "v", now - 1000 * window + draw.randrange(-3000, 3000)) for _ in range(20)]
    last = now // 1000
    held = [turn for turn in turns if last - window < turn[2] // 1000 <= last]

    def recount(*verticals: str) -> tuple[int, int, int]:
        chosen = [turn[0] for turn in held if turn[1] in verticals]
        return chosen.count(BOTH), chosen.count(MISSING_TRACE), chosen.count(MISSING_SIGNAL)

    answer = await coverage(await store_of(turns, now), now, window, ["v"])
    rows = {row.vertical: (row.both_present, row.missing_trace, row.missing_signal) for row in answer.verticals}
    expected = {
        "v": recount("v"),
        "unregistered": recount("w|x", "", "both_present", "stranger"),
        "unknown": recount("unknown"),
    }
    assert rows == {name: counts for name, counts in expected.items() if any(counts) or name == "v"}
    for row in answer.verticals:
        total = row.both_present + row.missing_trace + row.missing_signal
        assert row.rate == (row.both_present / total if total else None)


async def test_an_unregistered_vertical_still_answers_to_its_own_name() -> None:
    now = 500_000 * HOUR
    turns = [(BOTH, "stranger", now), (BOTH, "other", now), (MISSING_SIGNAL, "", now)]
    assert await counted(turns, now, 60, "stranger") == (1, 0, 0)
    assert await counted(turns, now, 60, "unregistered") == (2, 0, 1)
    assert await counted(turns, now, 60, "nobody") == (0, 0, 0)


async def test_a_vertical_without_turns_has_no_rate_and_is_listed_if_registered() -> None:
    answer = await coverage(await store_of([], 500_000 * HOUR), 500_000 * HOUR, 60, ["v"])
    (row,) = answer.verticals
    assert (row.vertical, row.rate) == ("v", None)


async def test_conservation_counts_records_of_clocks_that_run_ahead() -> None:
    now = 500_000 * HOUR
    store, change = MemoryStore(ManualClock(now)), Change()
    for time in (now, now + 20 * HOUR, now - LOOKBACK + 1000):
        tallies = {(Kind.THUMBS, time // HOUR, field): 1 for field in ("consumed", "done")}
        count_tallies(change, tallies, now, LOOKBACK)
    await store.apply(change)
    answer = await conservation(store, now, WEEK, DAY)
    assert answer.balanced
    assert answer.signals["thumbs"].consumed == answer.signals["thumbs"].done == 3
    assert answer.signals["trace"].consumed == 0


def test_a_balance_names_reasons_and_shows_what_is_missing() -> None:
    one = balance(
        [
            {"consumed": 9, "done": 2, "superseded": 1, "parked:no_trace": 1, "parked:withheld": 1},
            {"dead_lettered:malformed": 1, "dead_lettered:missing_trace": 1, "filtered:ttl_expiry": 1, "odd": 4},
        ]
    )
    assert (one.done, one.superseded, one.parked, one.dead_lettered, one.filtered) == (2, 1, 2, 2, 1)
    assert one.difference == 1
    assert one.reasons == {
        "parked": {"no_trace": 1, "withheld": 1},
        "dead_lettered": {"malformed": 1, "missing_trace": 1},
        "filtered": {"ttl_expiry": 1},
    }


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), (" 24 h ", 86_400), ("7d", WEEK)])
def test_durations_as_people_type_them(text: str, seconds: int) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5h", "h", "1w", "ten", "9" * 30, "1e3", "٣"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    if text == "٣":
        assert parse_seconds(text) == 3  # digits of any script are digits
        return
    with pytest.raises(ValueError, match="is no duration"):
        parse_seconds(text)


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
    store_versions(turn, [JoinStanding(names, came, True, 7_200_000, "")])
    trace = {"id": str(TRACE), "metadata": {"agent_id": "a", "agent_version": "v1"}}
    (pool,) = (await view_turn("r", store_with(turn), Opik({str(TRACE): trace}, {}), {})).pools
    assert not pool.pooled
    assert said in (pool.why or "")
    assert pool.agent_version == ("v1" if names == names_of("a", "v1") else None)


async def test_a_turn_says_that_it_is_in_its_versions_pool_or_beyond_the_edge() -> None:
    turn = Turn(trace=TRACE.bytes, project="p", time=7_200_000)
    names = names_of("a", "v1")
    store_versions(turn, [JoinStanding(names, Came.POOLED, True, 7_200_000, "")])
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
