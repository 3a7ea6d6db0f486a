"""Has the candidate answer each case as often as the suite says, and asks nothing that is kept.

An answer is kept by the candidate's configuration, the case and the sample's number: sample two is never a copy of
sample one. A failure is not kept: the next run asks again.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from agents.ports import Unavailable
from evalcore.gates.golden import OF_ANSWERS, TRACEPARENT, CandidateAnswer
from evalcore.nesting import TOO_DEEP, too_deep
from evalcore.scoring.items import NO_ANSWER, Failed, says_nothing
from evalcore.trajectory.reading import in_one_form

if TYPE_CHECKING:
    from rampgate.suite.tracing.receiver import SpanReceiver

LARGEST_ANSWER: Final = 4 << 20
DEAREST: Final = 1e6
"""US dollars that an answer may say it cost."""


Ready = Callable[[], Awaitable[Failed | None]]
"""Makes a candidate ready for one case, or says why it can't be."""


async def always_ready() -> Failed | None:
    """A candidate that needs no preparation."""
    return None


class Left(Failed):
    """The candidate was not asked: the run has spent what it may."""


class KeptValues(Protocol):
    """See `rampgate.store.sealed.Kept`."""

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]: ...
    async def put(self, key: str, value: bytes) -> bytes | None: ...
    async def use(self, keys: Sequence[str]) -> None: ...


@dataclass(frozen=True)
class Wanted:
    """One sample of one case. `case` holds what the candidate may see of it, `input` and `metadata`."""

    case_id: str
    sample: int
    case: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Generated:
    """What the candidate answered. `trace` is the hash of its trace's content, `kept` says that it was asked before."""

    case_id: str
    sample: int
    answer: CandidateAnswer
    latency_ms: float | None = None
    trace: str | None = None
    kept: bool = False


@dataclass(frozen=True)
class Generator:
    """`configuration` is the hash of all parts of the candidate; `places` is how many cases it is asked at once.
    Without `answers` none is kept, since nothing would tell that other code answers by now.
    `room` is for those that are asked or not kept yet: where the store is slow, no more is paid for meanwhile."""

    configuration: str
    ask: Callable[[Mapping[str, Any]], Awaitable[CandidateAnswer]]
    answers: KeptValues | None
    traces: KeptValues
    clock: Callable[[], float] = time.monotonic
    told: Callable[[Generated], None] = lambda generated: None
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(128))
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(128))
    tracing: SpanReceiver | None = None
    ready: Ready = always_ready
    waits: Sequence[float] = ()
    """Seconds before each further try of one that failed and may pass."""

    async def kept(self, wanted: Sequence[Wanted]) -> list[Generated | None]:
        """What is kept of these, in one look. A store that can't be used costs calls, and no answer."""
        if self.answers is None:
            return [None] * len(wanted)
        try:
            held = await self.answers.get_many([key_of(self.configuration, one) for one in wanted])
        except Unavailable:
            return [None] * len(wanted)
        kept = [_read(one, value) for one, value in zip(wanted, held, strict=True)]
        if used := [one.trace for one in kept if one is not None and one.trace]:
            with suppress(Unavailable):
                await self.traces.use(used)  # no answer outlives its trace
        return kept

    async def one(self, wanted: Wanted, found: Generated | None) -> Generated:
        """What the candidate answered, now where nothing that was kept is `found`."""
        if found is None:
            async with self.room:
                answer, latency = await self._asked(wanted.case)
                if not isinstance(answer, Failed) and says_nothing(answer):
                    answer = Failed(NO_ANSWER)
                found = Generated(wanted.case_id, wanted.sample, answer, latency)
                if not isinstance(answer, Failed):
                    found = await self._keep(wanted, found, answer)
        self.told(found)
        return found

    async def _asked(self, case: Mapping[str, Any]) -> tuple[CandidateAnswer, float | None]:
        """The answer of the last try, and how long that took."""
        for seconds in self.waits:
            answer, latency = await self._tried(case)
            if not (isinstance(answer, Failed) and answer.may_pass):
                return answer, latency
            await asyncio.sleep(seconds)
        return await self._tried(case)

    async def _tried(self, case: Mapping[str, Any]) -> tuple[CandidateAnswer, float | None]:
        """The answer, with what its spans tell of it, and how long it took without waiting for those."""
        if self.tracing is None:
            return await self._timed(case)
        traceparent = self.tracing.begin()
        try:
            answer, latency = await self._timed({**case, TRACEPARENT: traceparent})
            if not isinstance(answer, Failed):
                answer = await self.tracing.told(traceparent, answer)
        finally:
            self.tracing.drop(traceparent)
        return answer, latency

    async def _timed(self, case: Mapping[str, Any]) -> tuple[CandidateAnswer, float | None]:
        async with self.places:
            if (refused := await self.ready()) is not None:
                return refused, None
            began = self.clock()
            answer = await self.ask(case)
            latency = round((self.clock() - began) * 1000, 1)
        if too_deep(answer):
            answer = Failed(f"the candidate's answer {TOO_DEEP}")
        elif not isinstance(answer, Failed):
            answer = in_one_form(answer)
        return answer, latency if not isinstance(answer, Left) else None

    async def _keep(self, wanted: Wanted, found: Generated, answer: Mapping[str, Any]) -> Generated:
        """Keep the answer and its trace, the trace first; returns what another run kept before, where it did."""
        name, trace = trace_of(wanted, answer, found.latency_ms)
        record = orjson.dumps({"answer": answer, "latency_ms": found.latency_ms, "trace": name})
        earlier: Generated | None = None
        with suppress(Unavailable):
            await self.traces.put(name, trace)
            if self.answers is not None:
                earlier = _read(wanted, await self.answers.put(key_of(self.configuration, wanted), record))
        return earlier or Generated(wanted.case_id, wanted.sample, answer, found.latency_ms, name)


def trace_of(wanted: Wanted, answer: Mapping[str, Any], latency_ms: float | None) -> tuple[str, bytes]:
    """Returns how the candidate came to its answer, behind the hash of it."""
    trace = orjson.dumps(
        {"case": wanted.case, "latency_ms": latency_ms} | {name: answer[name] for name in OF_ANSWERS if name in answer},
        option=orjson.OPT_SORT_KEYS,
    )
    return hashlib.sha256(trace).hexdigest(), trace


def dollars_of(answer: CandidateAnswer) -> float | None:
    """Returns what the answer says it cost: at most DEAREST, so that the costs of any run have a sum."""
    given = answer if isinstance(answer, Mapping) else {}
    usage = given.get("usage")
    told = given.get("cost_usd", usage.get("cost_usd") if isinstance(usage, Mapping) else None)
    if isinstance(told, bool) or not isinstance(told, (int, float)) or not math.isfinite(told) or told < 0:
        return None
    return min(float(told), DEAREST)


def configuration_of(parts: Mapping[str, str], started: Mapping[str, Any] | None = None, code: str = "") -> str:
    """Returns the hash of a candidate's parts, each by its own hash, of what is `started` to answer, where that is ours
    to start, and of the commit that has the `code`, where no part names it."""
    asked: Any = [dict(parts), dict(started)] if started else dict(parts)
    asked = [asked, code] if code else asked
    return hashlib.sha256(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest()


def key_of(configuration: str, wanted: Wanted) -> str:
    """Returns the key of all that an answer depends on."""
    asked = [configuration, wanted.case.get("input"), wanted.case.get("metadata"), wanted.sample]
    return hashlib.sha256(orjson.dumps(asked, default=str, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _read(wanted: Wanted, held: bytes | None) -> Generated | None:
    if held is None:
        return None
    try:
        record = orjson.loads(held)
        answer, latency, trace = record["answer"], record["latency_ms"], record["trace"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if says_nothing(answer):
        return None  # kept by a release that took it for an answer
    return Generated(wanted.case_id, wanted.sample, answer, latency, trace, kept=True)
