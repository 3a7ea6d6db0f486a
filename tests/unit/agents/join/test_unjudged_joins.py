"""A signal and a trace are both present whether or not a judge scored the trace; joined turns that no judge scored are
counted beside that (PF-9 FR-11)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agents.join.counting import UNJUDGED
from rampgate.http.scrape import Scrape
from rampgate.queries import Queries
from rampgate.settings import Settings
from schemas.outcomes import Kind
from streams.metrics import Metrics
from streams.queries.coverage import WindowCoverage
from tests.unit.agents.builders import HOUR, MINUTE, NOW, SECOND, change, found_trace, reroll, trace
from tests.unit.agents.join.world import World

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
