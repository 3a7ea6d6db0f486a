"""Has a candidate's spans taken where its suite asks for them; else what that takes is not even imported."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from schemas.checks.suite import Candidate

if TYPE_CHECKING:
    from rampgate.suite.tracing.receiver import SpanReceiver


@asynccontextmanager
async def taking_spans(told: Candidate) -> AsyncIterator[SpanReceiver | None]:
    """Yields what takes the candidate's spans, None where its suite names no address for them. Raises Failure."""
    if told.otlp is None:
        yield None
        return
    from rampgate.suite.tracing.receiver import SpanReceiver

    async with SpanReceiver(float(told.otlp_seconds)).listening(told.otlp) as receiver:
        yield receiver
