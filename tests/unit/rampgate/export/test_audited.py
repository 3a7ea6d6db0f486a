"""An export that ends anywhere is on record with what it showed, or with more (PF-9 FR-12, AC-12)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from agents.ports import Unavailable
from evalcore.selection.where import parse_where
from rampgate.export.audited import audited
from schemas.answers import TurnView
from streams.kafka.client import Producer
from streams.queries.audit import Audit
from tests.memory_ports import AuditSink, ManualClock
from tests.unit.rampgate.export.session_turns import answered, each, pages_of

ALL = parse_where('vertical = "receipts"')


class Killed(Exception):
    pass


def ids_of_pages(sink: AuditSink, views: list[TurnView], size: int, *, limit: int | None) -> AsyncIterator[list[str]]:
    """The responses of which each page of lines shows a text."""
    audit = Audit(cast(Producer, sink), "audit", ManualClock())
    named: dict[str, Any] = {"caller": "c", "vertical": "receipts", "query": {}, "limit": limit, "seen": set()}
    pages = each(pages_of(views, size))

    async def ids() -> AsyncIterator[list[str]]:
        async with aclosing(audited(pages, ALL, audit, **named)) as turns:
            async for page in turns:
                yield [view.response_id for view in page]

    return ids()


def exported(
    sink: AuditSink, many: int, size: int, *, limit: int | None = None, killed_at: int | None = None
) -> list[list[str]]:
    """The pages that came to be written before the writer failed at one of them."""
    views = [answered(f"r-{number}", 2 * number, said=str(number // 3)) for number in range(many)]
    written = list[list[str]]()

    async def write() -> None:
        async for page in ids_of_pages(sink, views, size, limit=limit):
            if len(written) == killed_at:
                raise Killed
            written.append(page)

    with suppress(Killed, Unavailable):
        asyncio.run(write())
    return written


def hashed(ids: list[str]) -> str:
    return hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()


@given(st.integers(0, 24), st.integers(1, 7), st.none() | st.integers(1, 30), st.integers(0, 6))
def test_pf9_fr12_ac12_a_writer_that_fails_after_the_audit_leaves_a_record_of_more_never_of_less(
    many: int, size: int, limit: int | None, killed_at: int
) -> None:
    sink = AuditSink()
    written = exported(sink, many, size, limit=limit, killed_at=killed_at)
    on_record = [(one["count"], one["response_ids_sha256"]) for one in sink.records]
    assert on_record[: len(written)] == [(len(page), hashed(page)) for page in written]
    assert len(on_record) - len(written) in (0, 1), "the page on its way, and none beyond it"
    not_killed = AuditSink()
    whole = exported(not_killed, many, size, limit=limit)
    assert len(not_killed.records) == len(whole)
    assert written == whole[:killed_at]


def test_pf9_ac12_without_a_record_there_is_no_page() -> None:
    sink = AuditSink(failing_after=2)
    written = exported(sink, 60, 6)
    assert len(written) == len(sink.records) == 2
