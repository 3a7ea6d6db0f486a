"""Which traces a gate looks at (PC5 §5.5, FR-11): uniform over the window, bounded, whatever order they came in."""

from __future__ import annotations

import random
import uuid
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from evalcore.scoring.sampling import PooledTrace, draw, fingerprint, share

HOUR = 3_600_000


def traces(count: int, seed: int = 1) -> list[bytes]:
    dice = random.Random(seed)
    return [uuid.UUID(int=dice.getrandbits(128)).bytes for _ in range(count)]


def pools(candidates: list[PooledTrace], keep: int) -> list[list[bytes]]:
    """By hour, each with its lowest, as the state keeps them."""
    hours: dict[int, list[PooledTrace]] = {}
    for one in candidates:
        hours.setdefault(one.ended // HOUR, []).append(one)
    return [[c.pack() for c in sorted(found, key=lambda c: c.number)[:keep]] for found in hours.values()]


@given(st.integers(0, 2**16), st.integers(1, 40), st.integers(1, 12))
def test_a_sample_of_pools_is_the_sample_of_all_traces(seed: int, size: int, hours: int) -> None:
    dice = random.Random(seed)
    found = [PooledTrace(t, dice.randrange(hours * HOUR), 0, n) for n, t in enumerate(traces(200, seed))]
    kept = draw(pools(found, 40), -1, hours * HOUR, size)
    assert kept == sorted(found, key=lambda c: c.number)[:size]


@given(st.integers(0, 1000))
def test_order_and_redelivery_change_nothing(seed: int) -> None:
    found = [PooledTrace(t, n, 0, n) for n, t in enumerate(traces(60))]
    members = [one.pack() for one in found]
    again = [*members, *members]
    random.Random(seed).shuffle(again)
    assert draw([again], -1, 100, 20) == draw([members], -1, 100, 20)


def test_the_window_is_exact_to_the_millisecond_and_open_at_its_beginning() -> None:
    members = [PooledTrace(t, ended, 0, 0).pack() for t, ended in zip(traces(3), (1000, 1001, 2000), strict=True)]
    assert sorted(c.ended for c in draw([members], 1000, 2000, 9)) == [1001, 2000]


def test_a_trace_that_was_posted_twice_counts_once_by_its_later_record() -> None:
    (trace,) = traces(1)
    members = [PooledTrace(trace, 5, 0, 7).pack(), PooledTrace(trace, 5, 0, 9).pack()]
    assert [c.offset for c in draw([members], 0, 10, 5)] == [9]


def test_every_trace_is_as_likely_as_any_other() -> None:
    """Ids of one second look alike at their beginning (UUIDv7); the sample must not care."""
    counts: Counter[int] = Counter()
    for seed in range(300):
        dice = random.Random(seed)
        ids = [((seed << 80) | (n << 70) | dice.getrandbits(64)).to_bytes(16, "big") for n in range(40)]
        place = {trace: n for n, trace in enumerate(ids)}
        drawn = draw([[PooledTrace(t, 1, 0, 0).pack() for t in ids]], 0, 2, 10)
        counts.update(place[one.trace] for one in drawn)
    expected = 300 * 10 / 40
    spread = sum((counts[n] - expected) ** 2 / (expected * 0.75) for n in range(40))
    assert spread < 80, "chi square with 39 degrees of freedom, far beyond its 99.99th percentile"


def test_judges_that_share_a_rate_see_the_same_traces_and_a_higher_rate_sees_them_too() -> None:
    ids = traces(4000)
    low, high = ({t for t in ids if share(t) < rate} for rate in (0.1, 0.3))
    assert low < high
    assert 300 < len(low) < 500
    drawn = {one.trace for one in draw([[PooledTrace(t, 1, 0, 0).pack() for t in ids]], 0, 2, 400)}
    assert 20 < len(drawn & low) < 70, "being drawn and being scored have nothing to do with each other"


def test_a_fingerprint_is_of_the_items_not_of_their_order() -> None:
    assert fingerprint(["a", "b"]) == fingerprint(["b", "a"]) != fingerprint(["a", "c"])
