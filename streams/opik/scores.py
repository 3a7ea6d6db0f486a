"""Feedback scores to Opik, by the batch, each with its own outcome (PF-9 §5.4, Decision 14).

The call is the one under the SDK's `log_traces_feedback_scores`; here its answer is awaited. A batch that Opik refuses
is halved until the refused score stands alone, so that it does not take the others with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import quote

import msgspec

from agents.ports import Refusal, Write
from schemas.outcomes import Cause
from streams.opik.client import ApiError, OpikClient, OutOfTries, persist, reason

MOST = 1_000
Observe = Callable[[str, str], None]


class OpikScores:
    """The agents' `Scores`. At most `in_flight` calls at once over all batches; `observe(operation, outcome)`."""

    def __init__(
        self,
        client: OpikClient,
        *,
        in_flight: int,
        retry_seconds: float,
        observe: Observe = lambda operation, outcome: None,
    ) -> None:
        self._client = client
        self._room = asyncio.Semaphore(in_flight)
        self._seconds = retry_seconds
        self._observe = observe

    async def write(self, writes: Sequence[Write]) -> list[Refusal | None]:
        out: list[Refusal | None] = [None] * len(writes)
        others = [i for i, w in enumerate(writes) if w.value is None or w.trace_id[14:15] != "7"]
        places: Sequence[int] = range(len(writes))
        puts = writes
        if others:
            places = sorted(set(places).difference(others))
            puts = [writes[index] for index in places]
        jobs = [self._put(puts[at : at + MOST], places[at : at + MOST], out) for at in range(0, len(puts), MOST)]
        for index in others:
            write = writes[index]
            if write.trace_id[14:15] != "7":
                out[index] = Refusal(Cause.OPIK_REJECTED, f"trace id {write.trace_id} is no UUID version 7")
            else:
                jobs.append(self._delete(index, write, out))
        if len(jobs) == 1:
            await jobs[0]
        else:
            # Not a TaskGroup: it would hide Unauthorized in a group, and the worker has to see that to stop.
            for error in await asyncio.gather(*jobs, return_exceptions=True):
                if error is not None:
                    raise error
        return out

    async def _put(self, writes: Sequence[Write], places: Sequence[int], out: list[Refusal | None]) -> None:
        refusal = await self._call("put", lambda: self._client.send("PUT", "traces/feedback-scores", encode(writes)))
        if refusal is None:
            return
        if refusal.cause is Cause.OPIK_UNAVAILABLE or len(writes) == 1:
            for place in places:
                out[place] = refusal
            return
        middle = len(writes) // 2
        await self._put(writes[:middle], places[:middle], out)
        await self._put(writes[middle:], places[middle:], out)

    async def _delete(self, index: int, write: Write, out: list[Refusal | None]) -> None:
        out[index] = await self._call(
            "delete",
            lambda: self._client.call(
                "POST", f"traces/{quote(write.trace_id, '')}/feedback-scores/delete", {"name": write.name}
            ),
        )

    async def _call(self, operation: str, call: Callable[[], Awaitable[object]]) -> Refusal | None:
        async with self._room:
            try:
                await persist(
                    call,
                    seconds=self._seconds,
                    observe=lambda outcome: self._observe(operation, outcome),
                )
            except ApiError as error:
                return Refusal(Cause.OPIK_REJECTED, f"Opik answers {error.status_code}: {reason(error)}")
            except OutOfTries as error:
                return Refusal(
                    Cause.OPIK_UNAVAILABLE, f"no usable answer in {self._seconds:g} s, the last: {error.last}"
                )
            return None


_encode = msgspec.json.Encoder().encode


def encode(writes: Sequence[Write]) -> bytes:
    """The request body."""
    return _encode({"scores": writes})
