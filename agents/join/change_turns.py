"""Changes turns for what no consumer brought: a trace found later, a sweep's reading, what Opik holds already.

One read, merge and record for all of these, as `agents.join.batches.handle` is for a topic's batches.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agents.codec import TraceFacts
from agents.join.dead_letters import letters_for, send_letters
from agents.join.join import latest_first
from agents.join.late_writes import announce
from agents.join.step import ALL, NO_HOLD, StepContext, plan_scores, record, stood_still, until_recorded, write_scores
from agents.join.step_data import Refused, RetryState
from agents.keys import turn_keys
from agents.policy import Policy
from agents.ports import Ports
from schemas.dead_letters import Record
from schemas.topics import Topics


async def never() -> bool:
    """Return False: no rebuild holds back what a step writes."""
    return False


@dataclass(frozen=True)
class Writing:
    """How `change_turns` sends dead letters of refused scores: the stage they name, and the records that need not be
    read back from Kafka, since they are `held`. `rebuilding` tells, once the turns are merged, whether a lost state
    is rebuilt by now: then their scores wait, also those of turns that were read before the loss."""

    topics: Topics
    stage: str
    held: Sequence[Record] = ()
    rebuilding: Callable[[], Awaitable[bool]] = never


async def change_turns(
    response_ids: Sequence[str],
    ports: Ports,
    policy: Policy,
    merge: Callable[[StepContext], Awaitable[list[Refused]]],
    writing: Writing | None = None,
) -> StepContext:
    """Let `merge` change these turns, write the scores that they want then, and record; return the recorded attempt.

    The step of everything that no consumer brought: it counts no record and moves no watermark. `merge` returns the
    signals it gave up; it is called again, with the turns read again, where another worker changed one meanwhile.
    Without `writing` no score is written. Raises Unauthorized or Unavailable; a repetition is harmless.
    """
    retry_state = RetryState()

    async def attempt() -> StepContext | None:
        context = StepContext(ports.clock.now_ms(), policy, retry_state)
        context.load(response_ids, await ports.store.read(turn_keys(response_ids)))
        refused = await merge(context)
        if stood_still(context, ports):
            return None
        if writing is not None:
            context.hold = ALL if await writing.rebuilding() else NO_HOLD
            planned = plan_scores(context)
            if planned and not await announce(context, planned, ports):
                return None
            refused += await write_scores(context, planned, ports)
            if refused:
                letters = await letters_for(refused, ports, writing.topics, writing.held, writing.stage)
                await send_letters(ports, retry_state, letters)
        return context if await record(context, ports) else None

    return await until_recorded(attempt)


async def placed_traces(found: Sequence[TraceFacts], ports: Ports, policy: Policy) -> dict[str, list[TraceFacts]]:
    """Return the traces of each response that ended in the lookback window, the one that counts first, placed under the
    names that they are counted under. Raises Unavailable."""
    now = ports.clock.now_ms()
    recent = [one for one in found if one.ended >= now - policy.lookback]
    await ports.newcomers.place(recent, ports.store, now, policy.lookback)
    return latest_first(recent)
