"""Hands an export's pages on, each once its audit record is durable (PF-9 FR-12, PS-5 FR-12b).

Killed between the two, the record tells of more than was shown, never of less.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

from agents.ports import Unavailable
from evalcore.selection.where import Where, matches
from schemas.answers import TurnView
from streams.queries.audit import Audit

AUDIT_SECONDS = 20.0


async def audited(
    pages: AsyncIterator[list[TurnView]],
    where: Where,
    audit: Audit,
    *,
    caller: str,
    vertical: str,
    query: dict[str, Any],
    limit: int | None = None,
) -> AsyncGenerator[list[TurnView], None]:
    """The turns of each page that match, at most `limit` in all, where there are any. Keeps no page. Raises Unavailable
    where a page can't be audited: it is not handed on, and none after it."""
    left, number = limit, 0
    async for page in pages:
        found = [view for view in page if matches(where, view)][:left]
        if found:
            number += 1
            await record(audit, found, caller=caller, vertical=vertical, query={**query, "page": number})
            yield found
        if left is not None:
            left -= len(found)
            if left == 0:
                return


async def record(audit: Audit, shown: Sequence[TurnView], *, caller: str, vertical: str, query: dict[str, Any]) -> None:
    """Return once the record of these turns is durable. Raises Unavailable."""
    read = audit.read(caller, "eval", query, vertical, [view.response_id for view in shown])
    try:
        await asyncio.wait_for(read, AUDIT_SECONDS)
    except (Unavailable, TimeoutError) as error:
        told = str(error) or f"the audit topic gave no answer within {AUDIT_SECONDS:g} s"
        raise Unavailable(f"the read can't be audited, so nothing more is exported: {told}") from error
