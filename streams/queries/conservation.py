"""Sums conservation from the counters: every consumed record is in exactly one state (promise 3, contracts §2)."""

from __future__ import annotations

from collections.abc import Iterable

from agents.join.counting import CONSUMED, GAP, GAPS, HOUR, UNREADABLE
from agents.keys import CONSERVATION
from agents.ports import Store
from schemas.answers import Balance, Conservation
from schemas.outcomes import State
from schemas.signals import kinds

WITH_REASONS = (State.DEAD_LETTERED, State.PARKED, State.FILTERED)


async def conservation(store: Store, now_ms: int, window_seconds: int, future_ms: int) -> Conservation:
    """Totals of the hours that overlap (now - window, now], and of the hours up to `future_ms` ahead: a producer's
    clock may run ahead of ours, and its records are consumed nevertheless. Raises Unavailable."""
    first, last = (now_ms - window_seconds * 1000 + 1000) // HOUR, (now_ms + future_ms) // HOUR
    keys = [(kind, CONSERVATION.key(hour, kind)) for kind in kinds() for hour in range(first, last + 1)]
    found = await store.counts([key for _, key in keys])
    signals = {
        kind: balance(fields for (of, _), fields in zip(keys, found, strict=True) if of == kind) for kind in kinds()
    }
    balanced = all(signal.difference == signal.gaps == 0 for signal in signals.values())
    return Conservation(window_seconds=window_seconds, balanced=balanced, signals=signals)


def balance(hours: Iterable[dict[str, int]]) -> Balance:
    """The sum of hours. Pure. A field is `consumed`, `gap`, `gaps`, a state, or `<state>:<reason>`; an unknown one
    shows in the difference."""
    other = dict.fromkeys((CONSUMED, GAP, GAPS, UNREADABLE), 0)
    states = dict.fromkeys(State, 0)
    reasons: dict[str, dict[str, int]] = {state.value: {} for state in WITH_REASONS}
    for fields in hours:
        for name, records in fields.items():
            state, _, reason = name.partition(":")
            if state in other:
                other[state] += records
            elif state in states:
                states[State(state)] += records
                if reason:
                    of_state = reasons.setdefault(state, {})
                    of_state[reason] = of_state.get(reason, 0) + records
    return Balance(
        consumed=other[CONSUMED],
        **{state.value: records for state, records in states.items()},
        difference=other[CONSUMED] - sum(states.values()),
        gap=other[GAP],
        gaps=other[GAPS],
        unreadable=other[UNREADABLE],
        reasons={state: {k: v for k, v in sorted(found.items()) if v} for state, found in reasons.items()},
    )
