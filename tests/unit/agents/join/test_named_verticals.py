"""A signal without a trace counts under the vertical that its event names, so that a vertical which loses its traces
loses coverage (PF-9 FR-11, AC-11). A signal and a trace are both present whether or not a judge scored the trace;
joined turns that no judge scored are counted beside that (PF-9 FR-11)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from agents.join.counting import NAME_BYTES, UNJUDGED, short_name
from agents.join.turn import Mark, Signal, Turn, decode_turn, encode_turn
from agents.keys import KNOWN_NAME, turn_key
from agents.newcomers import Newcomers
from rampgate.http.scrape import Scrape
from rampgate.queries import Queries
from rampgate.settings import Settings
from schemas.outcomes import Kind
from schemas.signals import THUMBS
from schemas.verticals import UNREGISTERED
from streams.metrics import Metrics
from streams.queries.coverage import WindowCoverage, coverage
from tests.unit.agents.builders import HOUR, MINUTE, NOW, SECOND, change, found_trace, reroll, thumb, trace
from tests.unit.agents.join.world import WAIT, World

NAMED = {
    "stream record": (Kind.THUMBS, lambda vertical: change("r", vertical=vertical)),
    "plain thumb": (Kind.THUMBS, lambda vertical: thumb("r", vertical=vertical)),
    "exact thumb": (Kind.THUMBS, lambda vertical: thumb("r", vertical=vertical) | {"occurred_at": "2027-01-15T08:00Z"}),
    "reroll": (Kind.REROLL, lambda vertical: reroll("r", vertical=vertical)),
}


@pytest.mark.parametrize("form", NAMED)
async def test_pf9_fr11_a_signal_without_a_trace_counts_under_the_vertical_that_its_event_names(form: str) -> None:
    kind, event = NAMED[form]
    world = World()
    await world.tell(kind, event("shopping"))
    assert world.coverage() == {("shopping", "missing_trace"): 1}
    await world.age(WAIT + MINUTE)
    assert world.coverage() == {("shopping", "missing_trace"): 1}, "given up, and still a turn without a trace"
    world.balance()


@pytest.mark.parametrize("form", NAMED)
async def test_pf9_fr11_where_the_event_names_none_it_counts_as_unknown(form: str) -> None:
    kind, event = NAMED[form]
    for none in ("", None):
        world = World()
        await world.tell(kind, event(none))
        assert world.coverage() == {("unknown", "missing_trace"): 1}


@pytest.mark.parametrize("attribute", [{"NULL": True}, {"BOOL": True}, {"M": {}}])
async def test_a_vertical_that_is_no_text_costs_no_ones_thumb(attribute: dict[str, Any]) -> None:
    world, sent = World(), change("r")
    sent["dynamodb"]["NewImage"]["Vertical"] = attribute
    await world.tell(Kind.THUMBS, sent)
    assert world.coverage() == {("unknown", "missing_trace"): 1}
    assert world.conservation(Kind.THUMBS)["parked:no_trace"] == 1


@pytest.mark.parametrize("named", ["travel", None])
@pytest.mark.parametrize("way", ["event", "search"])
async def test_pf9_fr11_the_traces_own_word_replaces_it_also_where_it_names_none(way: str, named: str | None) -> None:
    world = World()
    await world.tell(Kind.THUMBS, change("r", vertical="shopping"))
    await world.tell(Kind.REROLL, reroll("r", vertical="games"))
    before = world.store.values[turn_key("r")][0]
    if way == "event":
        await world.tell(Kind.TRACE, trace("r", vertical=named))
    else:
        world.traces.known["r"] = found_trace("r", vertical=named or "")
        await world.age(MINUTE)
    assert world.coverage() == {(named or "", "both_present"): 1}
    await world.tell(Kind.THUMBS, change("r", "up", 2, vertical="shopping"))
    after = world.store.values[turn_key("r")][0]
    assert (b"shopping" in before, b"games" in before) == (True, True)
    assert (b"shopping" in after, b"games" in after) == (False, False), "a joined turn keeps no byte of it"
    world.balance()


async def test_pf9_fr11_the_first_signal_that_holds_says_the_vertical_and_a_withdrawn_one_nothing() -> None:
    world = World()
    await world.tell(Kind.REROLL, reroll("r", at=NOW + MINUTE, vertical="games"))
    assert world.coverage() == {("games", "missing_trace"): 1}
    await world.tell(Kind.THUMBS, change("r", "up", 1, vertical="shopping"))
    assert world.coverage() == {("shopping", "missing_trace"): 1}
    await world.tell(Kind.THUMBS, change("r", None, 2, vertical="shopping"))
    assert world.coverage() == {("games", "missing_trace"): 1}
    world.balance()


async def test_pf9_fr11_a_made_up_vertical_is_bounded_as_a_traces_name_is() -> None:
    refused: Counter[str] = Counter()
    world = World()

    def count(sort: str) -> None:
        refused[sort] += 1

    world.ports = replace(world.ports, newcomers=Newcomers({"shopping"}, 10, count))
    made_up = [change(f"r{n}", vertical=f"made-up-{n}") for n in range(300)]
    await world.tell(Kind.THUMBS, *made_up, change("ours", vertical="shopping"))
    found = world.coverage()
    assert len({vertical for vertical, _ in found}) == 12
    assert (found[UNREGISTERED, "missing_trace"], found["shopping", "missing_trace"]) == (290, 1)
    assert refused == {"vertical": 290}
    assert sum(key.startswith(KNOWN_NAME.prefix) for key in world.store.values) == 10
    await world.tell(Kind.THUMBS, change("long", vertical="v" * 4_000))
    assert all(len(key) < 200 for key in world.store.values), "no key is as long as a producer likes"
    answer = await coverage(world.store, world.clock.ms, 3_600, ["shopping"])
    assert [(row.vertical, row.missing_trace) for row in answer.verticals] == [("shopping", 1), (UNREGISTERED, 301)]


async def test_a_long_name_is_cut_as_a_traces_is_and_the_trace_takes_it_over() -> None:
    world, name = World(), "v" * 128
    await world.tell(Kind.THUMBS, change("r", vertical=name))
    assert world.coverage() == {(short_name(name), "missing_trace"): 1}
    assert len(world.turn("r").signals()[0][1].vertical) == NAME_BYTES
    await world.tell(Kind.TRACE, trace("r", vertical=name))
    assert world.coverage() == {(short_name(name), "both_present"): 1}


async def test_a_turn_stored_before_names_were_kept_is_read_and_leaves_unknown() -> None:
    """The bytes of a parked thumb as the release before stored them: eleven fields of a turn, ten of a signal."""
    old = bytes.fromhex("9bc400a0a0a0a000c4000000009a01cf000001a3185c5000c40101010100000000cf000001a3185d3a60")
    signal = Signal(1, NOW, b"\x01", Mark.PARKED, THUMBS.origin, parked_at=NOW + MINUTE)
    assert decode_turn(old) == Turn(thumbs=signal)
    assert encode_turn(decode_turn(old)) == old, "an unset name takes no byte"
    world = World()
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    await world.tell(Kind.TRACE, trace("r"))
    assert world.coverage() == {("shopping", "both_present"): 1}
    world.balance()


async def test_a_thumb_on_a_known_trace_takes_the_short_way_whatever_vertical_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("r", vertical="travel"))

    def general(*args: Any) -> Any:
        raise AssertionError("the general way")

    monkeypatch.setattr("agents.join.batches.merge_signal", general)
    await world.tell(Kind.THUMBS, change("r", vertical="shopping"))
    assert world.coverage() == {("travel", "both_present"): 1}


VERSION = {"agent_id": "assistant", "agent_version": "v1"}


async def shown(world: World) -> dict[str, float | None]:
    """What /metrics shows of shopping."""
    metrics = Metrics()
    own: dict[str, Any] = {"verticals": ("shopping",), "settings": Settings(), "policy": world.policy}
    parts: Any = SimpleNamespace(store=world.store, clock=world.clock, producer=None, topics=world.topics, **own)
    await Scrape(metrics, Queries(parts)).refresh()
    value = metrics.registry.get_sample_value
    both, no_trace, no_signal, rate = (
        value(f"eval_correlation_coverage_{name}", {"vertical": "shopping"})
        for name in ("both_present_count", "missing_trace_count", "missing_signal_count", "rate_ratio")
    )
    unjudged = value("rampgate_joined_unjudged_turns", {"vertical": "shopping"})
    return {"both": both, "no trace": no_trace, "no signal": no_signal, "rate": rate, "unjudged": unjudged}


def traced(rid: str, named: bool, **more: Any) -> dict[str, Any]:
    event = trace(rid, **more)
    event["metadata"] |= VERSION if named else {}
    return event


@pytest.mark.parametrize("named", [True, False], ids=["with a version", "without"])
@pytest.mark.parametrize("thumb_first", [True, False], ids=["thumb first", "trace first"])
async def test_pf9_fr11_a_joined_turn_that_no_judge_scored_is_both_present_and_counts_as_unjudged(
    named: bool, thumb_first: bool
) -> None:
    world = World()
    steps = [(Kind.THUMBS, change("r", "up", 1)), (Kind.TRACE, traced("r", named))]
    for kind, event in steps if thumb_first else steps[::-1]:
        await world.tell(kind, event)
    joined = {"both": 1, "no trace": 0, "no signal": 0, "rate": 1}
    assert await shown(world) == joined | {"unjudged": 1}
    await world.tell(Kind.REROLL, reroll("r"))
    assert await shown(world) == joined | {"unjudged": 1}
    await world.tell(Kind.TRACE, traced("r", named, judges=["quality"]))
    assert await shown(world) == joined | {"unjudged": 0}
    world.balance()


async def test_pf9_fr11_scores_that_opik_has_later_end_it_and_so_does_a_withdrawal() -> None:
    world = World()
    await world.tell(Kind.TRACE, trace("a", at=NOW + MINUTE), trace("b", at=NOW + MINUTE))
    await world.tell(Kind.THUMBS, change("a", "up", 1), change("b", "up", 1))
    assert (await shown(world))["unjudged"] == 2
    rate = await WindowCoverage(world.store, world.clock, ("shopping",)).rate(None, HOUR // SECOND)
    assert rate == 1, "counted beside the classes, and in none of them"
    world.traces.known["a"] = found_trace("a", judged=True)
    await world.age(MINUTE)
    assert (await shown(world))["unjudged"] == 1
    await world.tell(Kind.THUMBS, change("b", None, 2))
    assert await shown(world) == {"both": 1, "no trace": 0, "no signal": 0, "rate": 1, "unjudged": 0}


async def test_a_turn_joined_by_the_release_before_moves_no_figure_below_zero() -> None:
    """It was counted as both present alone; what it leaves now was never counted."""
    world = World()
    await world.tell(Kind.TRACE, trace("r"))
    await world.tell(Kind.THUMBS, change("r", "up", 1))
    for _, fields in world.store.counters.values():
        for name in [name for name in fields if f"{name}|".split("|")[1] == UNJUDGED]:
            del fields[name]
    await world.tell(Kind.TRACE, trace("r", judges=["quality"]))
    assert await shown(world) == {"both": 1, "no trace": 0, "no signal": 0, "rate": 1, "unjudged": 0}
