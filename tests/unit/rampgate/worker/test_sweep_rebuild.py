"""A sweep reads and writes nothing while workers rebuild a lost state, and says what they are at."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from agents.keys import ADOPTED, FOREVER, READ_AGAIN, WATERMARK
from agents.ports import Change, Unavailable
from rampgate.worker import sweep as sweeps
from rampgate.worker.sweep import make_sweep, whole_now
from schemas.topics import Topics
from streams.metrics import Metrics
from streams.retry import WallClock
from tests.memory_ports import ManualClock, MemoryStore

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
