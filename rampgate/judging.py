"""Makes what asks judges' model by the settings: for commands a scorer, and for all the limits of its calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from evalcore.gates.evaluate import scorer_for
from evalcore.scoring.cache import ScoreCache
from evalcore.scoring.model_caller import CallLimits
from evalcore.scoring.runner import Scorer
from rampgate.settings import Settings, revealed


def call_limits(settings: Settings) -> CallLimits:
    return CallLimits(
        settings.model_calls_at_once,
        settings.model_calls_per_minute,
        settings.model_call_seconds,
        settings.model_patience_seconds,
        judged_tokens=settings.judged_tokens,
    )


@asynccontextmanager
async def scorer_of(
    settings: Settings, cache: ScoreCache | None = None, *, words: bool = False, each: bool = False
) -> AsyncIterator[Scorer | None]:
    """Yields a scorer for as long as the context lasts; None where the settings name no model. With `words` the cache
    keeps the judges' reasons, too. With `each` equal texts of several items take a call each."""
    from evalcore.scoring.http_client import HttpClient

    limits, key = call_limits(settings), revealed(settings.model_key)
    async with (
        HttpClient(limits.at_once, limits.call_seconds) as client,
        scorer_for(client=client, cache=cache, limits=limits, url=settings.model_url, key=key, words=words) as scorer,
    ):
        if scorer is not None:
            scorer.each = each
        yield scorer
