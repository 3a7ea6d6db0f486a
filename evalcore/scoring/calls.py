"""The port to a model, the ways in which a call can fail, what a gate may spend on calls, and how long it waits for a
model that answers none (PC5 §9.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from evalcore.judges.evaluator import Prompt

MANY = 0.1
"""Share of failed calls from which the model is to blame for what a gate left unscored."""
GLITCH = 1.0
"""Seconds without an answer that do not yet make a model silent."""


class Failure(StrEnum):
    """The reasons why there is no score. A call whose failure may pass is repeated; after a `slip` once."""

    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    """The model's server answers 5xx, or without a completion."""
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    """The request as such: 400, 404 and the like."""
    UNAUTHORIZED = "unauthorized"
    SLIP = "slip"
    """An answer that is no score."""
    DOWN = "down"
    """Not asked: the model has answered no call for some time."""
    OVER_LIMIT = "over_limit"
    """Not asked: the gate has spent what it may."""
    UNBOUND = "unbound"
    """Not asked: there is nothing to judge, or no model to ask."""
    UNREADABLE = "unreadable"
    """Not asked: the item lacks what the judge reads."""
    OUT_OF_TIME = "out_of_time"
    """Not asked, or not waited for: the gate's time is over."""
    BROKEN = "broken"
    """A defect of ours."""


PASSING = frozenset({Failure.TIMEOUT, Failure.RATE_LIMITED, Failure.UNAVAILABLE, Failure.UNREACHABLE})
"""Failures that pass by themselves."""


class CallFailed(Exception):
    """A call without a score. `retry_after`: seconds that the server asks us to wait. The message goes into verdicts,
    so it quotes no prompt and no key."""

    def __init__(self, kind: Failure, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.kind, self.message, self.retry_after = kind, message, retry_after


@dataclass(frozen=True)
class Reply:
    """A model's reply. `tokens` is what the call cost in all, `dollars` the same in US dollars; None where the server
    does not say."""

    text: str
    tokens: int | None = None
    dollars: float | None = None


class Model(Protocol):
    def source(self, model: str) -> str:
        """Returns where the model of this name is; a part of the key under which answers are kept."""
        ...

    async def complete(self, asked: Prompt) -> Reply:
        """Make one call, without a repetition. Raises CallFailed; any other error counts as a defect."""
        ...


ANSWER_TOKENS = 500
"""The least that is set aside for a reply until the server says what it cost."""


CALL, ANSWER = "call", "answer"


@dataclass
class Bill:
    """What is set aside for a call, for its prompt and its reply."""

    prompt: int
    reserved: int
    made: bool = False


class Spend:
    """A gate's spending and its limits; None is no limit. Each call is paid for before it is made, so that
    simultaneous calls can't overspend together: with its prompt, and the dearest reply so far.

    It also counts the gate's `questions`, of which more may be `expected`, and those `settled`, by a call, a kept
    answer or a failure, which leaves one `unanswered`, and tells `listener` of each: progress is seen there. `dollars`
    is what the model's server said of `priced` calls of those `answered`; for one under way the dearest so far is set
    aside. `spent` says which limit was met.
    """

    def __init__(self, calls: int | None = None, tokens: int | None = None, dollars: float | None = None) -> None:
        self.most_calls, self.most_tokens, self.most_dollars = calls, tokens, dollars
        self._dearest, self._open = {CALL: 0.0, ANSWER: 0.0}, {CALL: 0, ANSWER: 0}
        self._longest, self._under_way, self._waiting = ANSWER_TOKENS, 0, list[asyncio.Future[None]]()
        self.spent = ""
        self.calls = self.tokens = self.answered = self.priced = 0
        self.expected = self.questions = self.settled = self.unanswered = 0
        self.dollars = 0.0
        self.listener: Callable[[], None] = lambda: None

    @property
    def limited(self) -> bool:
        return any(most is not None for most in (self.most_calls, self.most_tokens, self.most_dollars))

    def reserve(self, tokens: int) -> int:
        """Set tokens aside for a call and return how many. Raises CallFailed where the limit does not allow it."""
        if why := self._refusal(tokens):
            raise self._over(why)
        self._open[CALL] += 1
        self.calls += 1
        self.tokens += tokens + self._longest
        return tokens + self._longest

    def begin(self) -> None:
        """Something else than a call of a model is asked for, such as a candidate's answer. Raises CallFailed where the
        limit in US dollars does not allow it."""
        if why := self._too_dear(ANSWER):
            raise self._over(why)
        self._open[ANSWER] += 1

    def pay(self, dollars: float | None) -> None:
        """What was begun cost so much, None where no one says."""
        self._ended(ANSWER, dollars)

    def _refusal(self, tokens: int) -> str:
        """Why another call is over a limit; empty where it is not."""
        if self.most_calls is not None and self.calls >= self.most_calls:
            return f"the gate's limit of {self.most_calls} model calls is spent"
        if self.most_tokens is not None and self.tokens + tokens + self._longest > self.most_tokens:
            return f"the gate's limit of {self.most_tokens} tokens is spent"
        if self.most_dollars is not None and self.answered and not self.priced:
            return "the model's server does not say what calls cost: no limit in US dollars can be held"
        return self._too_dear(CALL)

    def _too_dear(self, kind: str) -> str:
        """The same of the limit in US dollars, with the dearest so far of the kind set aside."""
        if self.most_dollars is not None:
            aside = sum(self._dearest[one] * self._open[one] for one in self._open)
            if self.dollars + aside + self._dearest[kind] > self.most_dollars or self.dollars >= self.most_dollars:
                return f"the limit of ${self.most_dollars:g} is spent"
        return ""

    def _ended(self, kind: str, dollars: float | None) -> None:
        self._open[kind] -= 1
        if dollars is not None:
            self.dollars += dollars
            self._dearest[kind] = max(self._dearest[kind], dollars)

    def _over(self, why: str) -> CallFailed:
        self.spent = why
        return CallFailed(Failure.OVER_LIMIT, why)

    @contextmanager
    def begun(self, tokens: int) -> Iterator[Bill]:
        """Yields the bill of a call for which tokens are set aside as `reserve` does; given back where it is not
        made."""
        bill = Bill(tokens, self.reserve(tokens))
        self._under_way += 1
        try:
            yield bill
        finally:
            self._under_way -= 1
            if not bill.made:
                self.calls, self.tokens = self.calls - 1, self.tokens - bill.reserved
                self._open[CALL] -= 1
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_result(None)
            self._waiting.clear()

    async def room(self, tokens: int) -> None:
        """Wait for calls under way where only they can say whether a limit allows another: before the first reply no
        one knows what one costs, and later less may be spent than is set aside."""
        unknown = self.most_tokens is not None or self.most_dollars is not None
        while self._under_way and ((unknown and not self.answered) or self._refusal(tokens)):
            self._waiting.append(asyncio.get_running_loop().create_future())
            await self._waiting[-1]

    def charge(self, reserved: int, tokens: int | None, dollars: float | None = None, *, prompt: int = 0) -> None:
        """Replace what was reserved by what the call cost; where that is None, the reservation stays. `prompt`: the
        part of it that was known before."""
        if tokens is not None:
            self.tokens += tokens - reserved
            self._longest = max(self._longest, tokens - prompt)
        self.answered += tokens != 0 or dollars is not None
        self._ended(CALL, dollars)
        self.priced += dollars is not None

    def settle(self, *, answered: bool = True) -> None:
        """One question more has its answer, or never will."""
        self.settled += 1
        self.unanswered += not answered
        self.listener()


class CircuitBreaker:
    """Opens for one gate `seconds` after the first call that failed since a call was answered.

    A model that answers some calls keeps it closed.
    """

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds, self._now = seconds, now
        self._silent_since: float | None = None
        self._failing_since = 0.0
        self._last: CallFailed | None = None
        self._answered = self._failed = 0

    def began(self) -> None:
        """Note a call. It may never end, so silence is as old as the first call without an answer."""
        if self._silent_since is None:
            self._silent_since = self._now()

    def answered(self) -> None:
        self._answered += 1
        self._silent_since = self._last = None

    def failed(self, failure: CallFailed) -> None:
        """Note a failed call. A refusal is an answer: the server is there."""
        if failure.kind not in PASSING:
            self.answered()
            return
        self.began()
        self._failed += 1
        if self._last is None:
            self._failing_since = self._now()
        self._last = failure

    @property
    def over(self) -> bool:
        return self._last is not None and self._now() - self._failing_since >= self._seconds

    def down(self) -> CallFailed | None:
        """The failure of calls that were not made; None where the model answers."""
        if self._last is None:
            return None
        return CallFailed(Failure.DOWN, f"{self._silent}: {self._last.message}")

    def to_blame(self) -> CallFailed | None:
        """The model's failure that left items unscored when the time was over; None for a model that was only slow.

        It is to blame where it answered no call, at all or for as long as a gate waits, and where many calls failed.
        """
        if self._last is not None and self._silence >= GLITCH:
            return self.down()
        calls = self._answered + self._failed
        if self._failed and self._failed >= MANY * calls:
            why = f", the last so: {self._last.message}" if self._last is not None else ""
            return CallFailed(Failure.DOWN, f"the model failed {self._failed} of {calls} calls{why}")
        if self._silent_since is not None and (not self._answered or self._silence >= self._seconds):
            return CallFailed(Failure.DOWN, self._silent)
        return None

    @property
    def asked(self) -> bool:
        """True once a call was made."""
        return self._silent_since is not None or self._answered + self._failed > 0

    def silent(self) -> CallFailed | None:
        return CallFailed(Failure.DOWN, self._silent) if self._silence >= GLITCH else None

    @property
    def _silence(self) -> float:
        return self._now() - self._silent_since if self._silent_since is not None else 0.0

    @property
    def _silent(self) -> str:
        return f"the model has answered no call for {self._silence:.0f} s"
