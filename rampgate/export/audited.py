"""Hands an export's pages on, each once its audit record is durable (PF-9 FR-12, PS-5 FR-12b).

Killed between the two, the record tells of more than was shown, never of less.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any

from agents.ports import Unavailable
from evalcore.selection.where import Where, matches
from rampgate.export.chains import Chain, Chains
from rampgate.export.pairs import LIMIT, pairs, shown
from schemas.answers import TurnView
from schemas.verticals import TraceLayout
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


async def audited_pairs(
    pages: AsyncIterator[list[TurnView]],
    chains: Chains,
    where: Where,
    audit: Audit,
    *,
    layout: TraceLayout,
    caller: str,
    vertical: str,
    query: dict[str, Any],
    left_out: Counter[str],
    seen: set[str],
    limit: int | None = None,
    number: int = 0,
) -> AsyncGenerator[list[dict[str, Any]], None]:
    """The pairs of each page's chains, at most `limit` in all, as lines; what is left out is counted. A chain comes
    whole or not at all, and not where its last answer is in `seen`. A page's record tells of each response of which a
    text is shown, once. Raises Unavailable, and counts pages, as `audited` does."""
    left = limit
    async for whole in _whole_chains(pages, chains):
        lines: list[dict[str, Any]] = []
        for of_chain in pairs(whole, where, layout, left_out):
            if of_chain[0]["chosen_response_id"] in seen:
                continue
            if left is not None and len(lines) + len(of_chain) > left:
                left_out[LIMIT] += 1
                left = len(lines)
                break
            lines += of_chain
            if len(lines) == left:
                break
        if lines:
            number += 1
            await record(audit, shown(lines), caller=caller, vertical=vertical, query={**query, "page": number})
            seen.update(line["chosen_response_id"] for line in lines)
            yield lines
        if left is not None:
            left -= len(lines)
            if left == 0:
                return


async def _whole_chains(pages: AsyncIterator[list[TurnView]], chains: Chains) -> AsyncGenerator[list[Chain], None]:
    async for page in pages:
        yield chains.add(page)
    yield chains.rest()


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
