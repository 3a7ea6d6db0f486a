"""What a gate may spend on its judges: calls, tokens, or both.

The port to a model, and the ways in which a call can fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from evalcore.judges.evaluator import Prompt


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

    async def complete(self, asked: Prompt) -> Reply:
        """One call, not repeated. Raises CallFailed; anything else is taken for a defect."""
        ...


ANSWER_TOKENS = 500
"""Set aside for an answer until the server says what it cost."""


class Spend:
    """None: no limit. Each call is paid for before it is made, so that calls at once can't overspend together."""

    def __init__(self, calls: int | None = None, tokens: int | None = None) -> None:
        self.most_calls, self.most_tokens = calls, tokens
        self.calls = self.tokens = 0

    def reserve(self, tokens: int) -> int:
        """What was set aside. Raises CallFailed where the limit does not allow it."""
        needed = tokens + ANSWER_TOKENS
        if self.most_calls is not None and self.calls >= self.most_calls:
            raise CallFailed(Failure.OVER_LIMIT, f"the gate's limit of {self.most_calls} model calls is spent")
        if self.most_tokens is not None and self.tokens + needed > self.most_tokens:
            raise CallFailed(Failure.OVER_LIMIT, f"the gate's limit of {self.most_tokens} tokens is spent")
        self.calls += 1
        self.tokens += needed
        return needed

    def settle(self, reserved: int, tokens: int | None) -> None:
        """What the call cost; None where nobody knows, then what was set aside stands."""
        if tokens is not None:
            self.tokens += tokens - reserved
