"""Which stream of the table to read: its latest, or first one that was replaced and still has records."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

import structlog

from streams.dynamo import Described, Gone, Misconfigured
from streams.gaps import Gaps
from streams.leases import Ledger, label

log = structlog.get_logger(__name__)


class Streams(Protocol):
    async def latest_stream(self) -> str: ...
    async def describe(self, arn: str) -> Described: ...


async def find_stream(streams: Streams, ledger: Ledger, gaps: Gaps, just_read: str, *, wait: bool) -> str:
    """The ARN to read next. `just_read` has come to its end.

    Raises Gone while there is no table, or Misconfigured where nobody is to `wait` for it. What changed between two
    streams is in neither, so a replaced one is a gap.
    """
    try:
        latest = await streams.latest_stream()
    except Gone as error:
        if not wait:
            raise Misconfigured(f"no such table: {error}") from error
        raise Gone(f"waiting for the table: {error}") from error
    known = await ledger.stream()
    if known is not None and known not in (latest, just_read):
        with suppress(Gone):
            await streams.describe(known)
            log.warning("feed_older_stream", stream=label(known), latest=label(latest))
            return known
    if known is not None and known != latest:
        await gaps.report(known, "", f"the stream was replaced by {label(latest)}")
    await ledger.set_stream(latest)
    log.info("feed_found_stream", stream=latest)
    return latest
