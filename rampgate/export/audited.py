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
    seen: set[str],
    limit: int | None = None,
    number: int = 0,
) -> AsyncGenerator[list[TurnView], None]:
    """The turns of each page that match, at most `limit` in all, where there are any. Keeps no page. Raises Unavailable
    where a page can't be audited: it is not handed on, and none after it.

    A response in `seen` is passed over, and what is handed on comes to be there: a trace that is added meanwhile may
    answer it once more. `number`: of the last page that an earlier process handed on."""
    left = limit
    async for page in pages:
        new = {view.response_id: view for view in page if view.response_id not in seen and matches(where, view)}
        found = list(new.values())[:left]
        if found:
            number += 1
            ids = [view.response_id for view in found]
            await record(audit, ids, caller=caller, vertical=vertical, query={**query, "page": number})
            seen.update(ids)
            yield found
        if left is not None:
            left -= len(found)
            if left == 0:
                return


async def record(
    audit: Audit, response_ids: Sequence[str], *, caller: str, vertical: str, query: dict[str, Any]
) -> None:
    """Return once the record of these turns is durable. Raises Unavailable."""
    read = audit.read(caller, "eval", query, vertical, response_ids)
    try:
        await asyncio.wait_for(read, AUDIT_SECONDS)
    except (Unavailable, TimeoutError) as error:
        told = str(error) or f"the audit topic gave no answer within {AUDIT_SECONDS:g} s"
        raise Unavailable(f"the read can't be audited, so nothing more is exported: {told}") from error
