"""A sweep reads and writes nothing while workers rebuild a lost state, and says what they are at. What a sweep does is
counted as what a worker does, in the metrics that its file shows (PF-9 FR-6, FR-11). A sweep publishes what it reads
with the time at which it read it, so its clock must be right."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from agents.keys import ADOPTED, FOREVER, READ_AGAIN, WATERMARK
from agents.newcomers import Newcomers
from agents.ports import Change, Unavailable
from rampgate.worker import sweep as sweeps
from rampgate.worker.sweep import agreed_now, make_sweep, whole_now
from schemas.outcomes import Kind
from schemas.topics import Topics
from streams.metrics import Metrics
from streams.retry import WallClock
from streams.sweep.log import SegmentPlace
from streams.sweep.sweep import Sweep
from tests.memory_ports import ManualClock, MemoryStore
from tests.unit.agents.builders import found_trace, trace
from tests.unit.agents.join.world import World
from tests.unit.streams.sweep.sweep_table import Slow, Table

PLACE = TP("rampgate.thumbs", 0)
ADOPTION = b'{"since": 0, "began": 1, "place": {"share": 0.4}}'


class Store(MemoryStore):
    async def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


@pytest.fixture
def parts() -> Any:
    return SimpleNamespace(clock=WallClock(), store=Store(ManualClock()), metrics=Metrics())


async def note(parts: Any, **held: bytes) -> None:
    keys = {"adopted": ADOPTED.key(), "again": READ_AGAIN.key(), "mark": WATERMARK.key(*PLACE)}
    await parts.store.apply(Change(sets={keys[name]: (value, FOREVER) for name, value in held.items()}))


async def test_it_waits_until_what_opik_holds_is_adopted(parts: Any) -> None:
    await note(parts, adopted=ADOPTION)
    with pytest.raises(Unavailable, match="40% of what Opik holds is adopted; a sweep waits"):
        await whole_now(parts)
    await note(parts, adopted=b"1")
    assert await whole_now(parts)


async def test_it_waits_until_settled_records_are_read_again(parts: Any) -> None:
    await note(parts, adopted=b"1", again=b'{"until": {"rampgate.thumbs/0": 10}, "since": 1}', mark=b"9")
    with pytest.raises(Unavailable, match="read settled records again"):
        await whole_now(parts)
    await note(parts, mark=b"10")
    assert await whole_now(parts)


async def test_a_rebuild_that_begins_in_the_middle_ends_it(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep asks before each page; what it has done by then is kept."""
    monkeypatch.setattr(sweeps, "Sweep", lambda *given, **named: SimpleNamespace(now=given[7]))
    parts.access, parts.topics = None, Topics()
    for name in ("ports", "opik", "producer", "policy"):
        setattr(parts, name, SimpleNamespace(traces=None))
    sweep = make_sweep(parts, None, 0, dry=False)
    assert await sweep.now()
    await note(parts, adopted=ADOPTION)
    with pytest.raises(Unavailable):
        await sweep.now()


def sweep_of(world: World, metrics: Metrics, table: Any) -> Sweep:
    """The sweep as the command makes it, on parts in memory; its time is the world's."""
    opik = SimpleNamespace(traces=world.traces)
    own: dict[str, Any] = {
        "access": None,
        "verticals": {"shopping": None},
        "policy": world.policy,
        "topics": world.topics,
    }
    parts: Any = SimpleNamespace(ports=world.ports, opik=opik, producer=Slow(), metrics=metrics, **own)
    sweep = make_sweep(parts, table, 0, dry=False)

    async def now() -> int:
        return world.clock.now_ms()

    sweep.now = now
    return sweep


async def test_scores_that_a_sweep_writes_are_in_its_metrics() -> None:
    """Those of items whose trace is known, and those of turns that waited for it."""
    world, metrics = World(), Metrics()

    def written(signal: str) -> float:
        names = dict.fromkeys(("sub_agent", "category"), "other")
        labels = {"vertical": "shopping", "signal": signal, **names}
        return metrics.registry.get_sample_value("eval_correlation_records_written_total", labels) or 0

    await world.tell(Kind.TRACE, trace("r-a"))
    sweep = sweep_of(world, metrics, Table([[["a", "b"]]]))
    await sweep.scan(0, 1, SegmentPlace())
    assert (written("thumbs"), written("reroll")) == (1, 1)
    world.traces.known["r-b"] = found_trace("r-b")
    await sweep.finish_waiting()
    assert (written("thumbs"), written("reroll")) == (2, 2)
    assert sweep.tally.scores_written == len(world.scores.held) == 4


async def test_pf9_fr11_a_swept_thumb_without_a_trace_counts_under_its_items_vertical() -> None:
    world = World()
    world.ports = replace(world.ports, newcomers=Newcomers((), most=1))
    sweep = sweep_of(world, Metrics(), Table([[["a"]]]))
    await sweep.scan(0, 1, SegmentPlace())
    assert world.coverage() == {("shopping", "missing_trace"): 1}
    another = sweep_of(world, Metrics(), Table([[["b"]]], vertical="v" * 300))
    await another.scan(0, 1, SegmentPlace())
    assert world.coverage() == {("shopping", "missing_trace"): 1, ("unregistered", "missing_trace"): 1}


DAY_MS = 86_400_000


class Redis:
    def __init__(self, off_by: int) -> None:
        self.off_by = off_by

    async def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.off_by


def parts_off(off_by: int) -> Any:
    return SimpleNamespace(clock=WallClock(), store=Redis(off_by), metrics=Metrics())


@pytest.mark.parametrize("off_by", [-8 * DAY_MS, 8 * DAY_MS])
async def test_a_sweep_with_a_wrong_clock_ends_and_says_by_how_much(off_by: int) -> None:
    with pytest.raises(Unavailable, match=r"691\d\d\d s (ahead|behind)"):
        await agreed_now(parts_off(off_by))


async def test_a_sweep_whose_clock_agrees_goes_by_it() -> None:
    before = time.time_ns() // 1_000_000
    assert before <= await agreed_now(parts_off(10_000)) <= time.time_ns() // 1_000_000
