"""Adopts what Opik holds already, after the state was lost, before the topics are read again: so none of it is written
twice (promises 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence

from agents.codec import TraceFacts
from agents.join.change_turns import change_turns, placed_traces
from agents.join.join import merge_trace
from agents.join.step import StepContext
from agents.join.step_data import Refused
from agents.join.turn import MAYBE, Mark, Signal, trace_began, value_of
from agents.policy import Policy
from agents.ports import Ports
from schemas.signals import DECLARED


async def adopt(found: Sequence[TraceFacts], ports: Ports, policy: Policy, before: int) -> int:
    """Note the scores on these traces as written; return how many traces count. Any version from the topics replaces a
    signal that is known from Opik alone.

    Traces that began at or after `before` (ms) are left out: their turns are written meanwhile, and the state knows.
    """
    facts = await placed_traces([one for one in found if one.wrote and trace_began(one.trace) < before], ports, policy)

    async def merge(context: StepContext) -> list[Refused]:
        for response_id, snapshot in context.turns.items():
            turn = snapshot.turn
            for seen in facts[response_id]:
                for kind, code in seen.wrote.items():
                    value = value_of(DECLARED[kind], code)
                    if value and turn.signal(kind) is None:
                        turn.put(kind, known(value, seen.ended))
                merge_trace(turn, seen)
                for kind in DECLARED if turn.trace == seen.trace else ():
                    if turn.wrote(kind) == MAYBE:  # a withdrawal that was read again did not know what Opik holds
                        turn.note(kind, seen.wrote.get(kind, 0))
            snapshot.touched = True  # also where the records were read again first, and only the scores are news
        return []

    await change_turns(list(facts), ports, policy, merge)
    return len(facts)


def known(value: int, time: int) -> Signal:
    """Return a signal of the lowest version there is."""
    return Signal(value, time, mark=Mark.DONE, asof=-time)
