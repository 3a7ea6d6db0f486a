"""Declares how the stand-in can misbehave: slow, wrong, rate-limited, or unavailable for all requests or some.

A behaviour is set by the constructor; by `PUT /_behaviour` (JSON, until the next one; `DELETE` ends it); or for one
request by its header `X-Stand-In-Behaviour` (the same JSON), which overrides the others:

    {"latency_seconds": 0.3, "wrong": "off_scale", "status": 429, "retry_after": 1, "drop": false, "share": 0.5,
     "times": 3, "gullible": {"obeys": "told"}}

`share` is the part of the requests that fail or get a wrong answer, evenly spread: 0.5 is every second one. `times`
limits their number; later requests are answered as usual. Latency applies to all.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rampgate.local.model.gullible import Gullible
from rampgate.local.model.scripted import Script

HEADER = "X-Stand-In-Behaviour"
Wrong = Literal["off_scale", "prose", "wrong_type", "not_finite", "empty", "no_completion", "quoted"]


class Behaviour(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    latency_seconds: float = Field(0.0, ge=0)
    wrong: Wrong | None = None
    """`no_completion`: a 200 without a completion; `quoted`: the score as a text."""
    status: int | None = Field(None, ge=400, le=599)
    retry_after: float | None = Field(None, ge=0)
    drop: bool = False
    """Close the connection instead of answering."""
    gullible: Gullible | None = None
    """What it obeys of the texts that it judges; `share` and `times` do not limit it."""
    prefers: Literal[1, 2] | None = None
    """Of two answers it prefers the one in this place, whatever it says; `share` and `times` do not limit it."""
    variants: tuple[dict[str, Any], ...] | None = None
    """What it proposes where prompts are asked for (`rampgate optimize`)."""
    scripts: tuple[Script, ...] = ()
    """What it answers in conversations that one of these fits, with tool calls."""
    share: float = Field(1.0, ge=0, le=1)
    times: int | None = Field(None, ge=0)


class Conduct:
    """A behaviour, and how many requests it has seen and failed."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self._seen = self._acted = 0

    def acts(self) -> bool:
        """Tells whether the next request fails, and counts it."""
        wanted = self.behaviour
        if wanted.times is not None and self._acted >= wanted.times:
            return False
        before, self._seen = int(self._seen * wanted.share), self._seen + 1
        act = int(self._seen * wanted.share) > before
        self._acted += act
        return act


def spoiled(answer: dict[str, Any], wrong: Wrong, high: float) -> str:
    """The text of an answer that is wrong in this way."""
    if wrong == "empty":
        return ""
    if wrong == "prose":
        return f"I would give this a {answer['score']}, since it reads well."
    score: Any = {"off_scale": high + 1, "not_finite": float("nan"), "quoted": str(answer["score"])}.get(wrong)
    if wrong == "wrong_type":
        score = ["no", "score"]
    return json.dumps({**answer, "score": score})
