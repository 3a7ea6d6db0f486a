"""Sums conservation from the counters: every consumed record is in exactly one state (promise 3, contracts §2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from agents.join.counting import CONSUMED, GAP, GAPS, HOUR, LETTERS, UNREADABLE
from agents.join.versions import Came
from agents.keys import CONSERVATION, COVERAGE, POOL_EDGE, REFUSED, TURN_POOL, UNNAMED, pool_place, spelled
from agents.ports import Store
from schemas.answers import Balance, Conservation, SampleBalance
from schemas.outcomes import State
from schemas.signals import kinds

MOST_POOLS = 5_000
_UNNAMED, _REFUSED = spelled(UNNAMED), spelled(REFUSED)
_CAME = {Came.RUNNING: "running", Came.NOT_COME: "record_not_come", Came.DEAD: "dead_lettered", Came.POOLED: "pooled"}
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
    samples = await sample_balance(store, range(first, last + 1))
    balanced = all(signal.difference == signal.gaps == 0 for signal in signals.values()) and not samples.difference
    return Conservation(window_seconds=window_seconds, balanced=balanced, signals=signals, samples=samples)


async def sample_balance(store: Store, hours: Sequence[int]) -> SampleBalance:
    """The turns of agent versions in these hours, and whether their pools have what the counts say. Looks at MOST_POOLS
    pools, of the newest hours. Raises Unavailable."""
    keys = [COVERAGE.key(hour) for hour in hours]
    known = [
        (hour, names) for hour, fields in zip(hours, await store.counts(keys), strict=True) for names in _of(fields)
    ]
    places = [pool_place(None, names, hour) for hour, names in known if names not in (_UNNAMED, _REFUSED)][-MOST_POOLS:]
    edges, pools = [POOL_EDGE.key(*place) for place in places], [TURN_POOL.key(*place) for place in places]
    seen = await store.at_once((), [*keys, *edges], (), pools)
    counts = {hour: _of(fields) for hour, fields in zip(hours, seen.counts, strict=False)}
    out, difference = Counter[str](), 0
    for names, came in (one for of in counts.values() for one in of.items()):
        if names in (_UNNAMED, _REFUSED):
            out["unnamed" if names == _UNNAMED else "refused"] += came.total()
        else:
            out.update({_CAME[LETTERS.index(letter)]: turns for letter, turns in came.items()})
    for (hour, whose), rim, size in zip(places, seen.counts[len(keys) :], seen.sizes, strict=True):
        counted = counts[hour].get(whose.partition(":")[0], Counter())
        difference += abs(counted[LETTERS[Came.POOLED]] - size - rim.get("beyond", 0))
    return SampleBalance(**out, difference=difference)


def _of(fields: Mapping[str, int]) -> dict[str, Counter[str]]:
    """Turns of one hour's counters by hashed names and letter of the standing."""
    out: dict[str, Counter[str]] = {}
    for name, turns in fields.items():
        token = name.rpartition("|")[2]
        if len(token) > 1:
            out.setdefault(token[3:], Counter())[token[1]] += turns
    return out


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
