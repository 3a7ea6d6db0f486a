"""After the state was lost: what Opik holds already is adopted first, so that reading the topics again writes none of
it twice (promises 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence

from agents.codec import TraceFacts
from agents.join.join import merge_trace
from agents.join.step import StepContext, record
from agents.join.step_data import ATTEMPTS, exhausted
from agents.join.turn import Mark, Signal, value_of
from agents.keys import turn_keys
from agents.policy import Policy
from agents.ports import Ports
from schemas.signals import DECLARED


async def adopt(found: Sequence[TraceFacts], ports: Ports, policy: Policy) -> int:
    """Note what these traces carry as written. A signal known only from Opik yields to any version from the topics."""
    now = ports.clock.now_ms()
    facts = {f.response_id: f for f in found if f.ended >= now - policy.lookback and f.wrote}
    for _ in range(ATTEMPTS):
        context = StepContext(now, policy)
        context.load(list(facts), await ports.store.read(turn_keys(facts)))
        for response_id, snapshot in context.turns.items():
            turn, seen = snapshot.turn, facts[response_id]
            snapshot.touched |= merge_trace(turn, seen)
            for kind, code in seen.wrote.items():
                value = value_of(DECLARED[kind], code)
                if value and turn.signal(kind) is None:
                    turn.put(kind, known(value, seen.ended))
                    snapshot.touched = True
        if await record(context, ports):
            return len(facts)
    raise exhausted()


def known(value: int, time: int) -> Signal:
    """A signal of the lowest version there is."""
    return Signal(value, time, mark=Mark.DONE, asof=-time)
