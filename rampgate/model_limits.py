"""From settings to the limits on calls of the judges' model."""

from __future__ import annotations

from evalcore.scoring import CallLimits
from rampgate.settings import Settings


def call_limits(settings: Settings) -> CallLimits:
    return CallLimits(
        settings.model_calls_at_once,
        settings.model_calls_per_minute,
        settings.model_call_seconds,
        settings.model_patience_seconds,
    )
