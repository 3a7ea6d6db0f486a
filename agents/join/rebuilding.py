"""After the state was lost: what Opik holds already is adopted first, so that reading the topics again writes none of
it twice (promises 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence

from agents.codec import TraceFacts
from agents.join.join import merge_trace
from agents.join.turn import Mark, Signal
from agents.join.work import ATTEMPTS, Work, exhausted, record
from agents.keys import turn_keys
from agents.policy import Policy
from agents.ports import Ports


async def adopt(found: Sequence[TraceFacts], ports: Ports, policy: Policy) -> int:
    """Note what these traces carry as written. A signal known only from Opik yields to any version from the topics."""
    now = ports.clock.now_ms()
    facts = {f.response_id: f for f in found if f.ended >= now - policy.lookback and (f.thumbs or f.reroll)}
    for _ in range(ATTEMPTS):
        work = Work(now, policy)
        work.load(list(facts), await ports.store.read(turn_keys(facts)))
        for rid, loaded in work.turns.items():
            turn, seen = loaded.turn, facts[rid]
            loaded.touched |= merge_trace(turn, seen)
            if turn.thumbs is None and seen.thumbs:
                turn.thumbs, loaded.touched = known(seen.thumbs, seen.ended), True
            if turn.reroll is None and seen.reroll == 2:
                turn.reroll, loaded.touched = known(1, seen.ended), True
        if await record(work, ports):
            return len(facts)
    raise exhausted()


def known(value: int, time: int) -> Signal:
    """A signal of the lowest version there is."""
    return Signal(value, time, mark=Mark.DONE, asof=-time)
