"""The port to a model, and the ways in which a call can fail."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from evalcore.scoring.asking import Ask


class Failure(StrEnum):
    """Why there is no score. What a repetition may mend is tried again; `slip` once."""

    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    """The model's server answers 5xx."""
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    """The request as such: 400, 404 and the like."""
    UNAUTHORIZED = "unauthorized"
    SLIP = "slip"
    """An answer that is no score."""
    DOWN = "down"
    """Not asked: the model has answered nobody for some time."""
    OVER_LIMIT = "over_limit"
    """Not asked: the gate has spent what it may."""
    UNBOUND = "unbound"
    """Not asked: the item has not what the judge reads."""
    OUT_OF_TIME = "out_of_time"
    """Not asked, or not waited for: the gate's time is over."""
    BROKEN = "broken"
    """A defect of ours."""


PASSING = frozenset({Failure.TIMEOUT, Failure.RATE_LIMITED, Failure.UNAVAILABLE, Failure.UNREACHABLE})
"""They pass by themselves."""


class CallFailed(Exception):
    """`retry_after`: seconds the server asks us to wait. The message goes into verdicts: it quotes no prompt and no
    key."""

    def __init__(self, kind: Failure, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.kind, self.message, self.retry_after = kind, message, retry_after


@dataclass(frozen=True)
class Reply:
    """`tokens` is what the call cost in all, None where the server does not say."""

    text: str
    tokens: int | None = None


class Model(Protocol):
    @property
    def source(self) -> str:
        """Where the model is; a part of the key under which answers are kept."""
        ...

    async def complete(self, asked: Ask) -> Reply:
        """One call, not repeated. Raises CallFailed; anything else is taken for a defect."""
        ...
