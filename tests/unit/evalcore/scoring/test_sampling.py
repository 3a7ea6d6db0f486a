"""Which traces a gate looks at (PC5 §5.5, FR-11): uniform over the window, bounded, whatever order they came in."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evalcore.scoring.sampling import PooledTurn, draw, fingerprint, in_window, share, turn_hash

HOUR = 3_600_000


def hashes(count: int, seed: int = 1) -> list[bytes]:
    dice = random.Random(seed)
    return [turn_hash(f"resp_{dice.getrandbits(96):x}") for _ in range(count)]


def place(turn: bytes, ended: int = 1_000, offset: int = 0, **more: Any) -> PooledTurn:
    return PooledTurn(turn, ended, **{"trace": bytes(16), "partition": 0, "offset": offset, **more})


def drawn(pools: list[list[bytes]], since: int, until: int, size: int) -> list[PooledTurn]:
    return draw([one for pool in pools for one in in_window(pool, since, until).values()], size)


def pools(candidates: list[PooledTurn], keep: int) -> list[list[bytes]]:
    """By hour, each with its lowest, as the state keeps them."""
    hours: dict[int, list[PooledTurn]] = {}
    for one in candidates:
        hours.setdefault(one.ended // HOUR, []).append(one)
    return [[c.pack() for c in sorted(found, key=lambda c: c.number)[:keep]] for found in hours.values()]


@given(st.integers(0, 2**16), st.integers(1, 40), st.integers(1, 12))
def test_a_sample_of_pools_is_the_sample_of_all_turns(seed: int, size: int, hours: int) -> None:
    dice = random.Random(seed)
    found = [place(t, dice.randrange(hours * HOUR), n) for n, t in enumerate(hashes(200, seed))]
    kept = drawn(pools(found, 40), -1, hours * HOUR, size)
    assert kept == sorted(found, key=lambda c: c.number)[:size]


@given(st.integers(0, 1000))
def test_order_and_redelivery_change_nothing(seed: int) -> None:
    found = [place(t, n, n) for n, t in enumerate(hashes(60))]
    members = [one.pack() for one in found]
    again = [*members, *members]
    random.Random(seed).shuffle(again)
    assert drawn([again], -1, 100, 20) == drawn([members], -1, 100, 20)


def test_the_window_is_exact_to_the_second_and_open_at_its_beginning() -> None:
    """As coverage counts: the sample and the counts that it is compared with have the same turns."""
    times = (1_000, 1_999, 2_000, 3_999, 4_000)
    members = [place(t, ended).pack() for t, ended in zip(hashes(5), times, strict=True)]
    assert sorted(c.ended for c in drawn([members], 1, 3, 9)) == [2_000, 3_999]


def test_of_a_turns_places_the_one_that_ended_last_counts_then_the_later_record() -> None:
    (turn,) = hashes(1)
    early, late = bytes(16), bytes([1]) * 16
    order = [
        place(turn, 5, 9, trace=late),
        place(turn, 6, 1, trace=late),
        place(turn, 6, 2, trace=early),
        place(turn, 6, 3, trace=late, stamp=1),
        place(turn, 6, 1, trace=early, stamp=2, partition=1),
    ]
    for at, one in enumerate(order):
        for other in order[at + 1 :]:
            assert other.later(one)
            assert not one.later(other)
    members = [one.pack() for one in order]
    for some in (members, members[::-1]):
        assert drawn([some], -1, 10, 5) == [order[-1]]
        assert PooledTurn.unpack(some[0]).pack() == some[0]


def test_every_turn_is_as_likely_as_any_other() -> None:
    """Ids of one second look alike at their beginning (UUIDv7); the sample must not care."""
    counts: Counter[int] = Counter()
    for seed in range(300):
        dice = random.Random(seed)
        ids = [((seed << 80) | (n << 70) | dice.getrandbits(64)).to_bytes(16, "big") for n in range(40)]
        turns = {turn_hash(one.hex()): n for n, one in enumerate(ids)}
        counts.update(turns[one.turn] for one in draw([place(turn) for turn in turns], 10))
    expected = 300 * 10 / 40
    spread = sum((counts[n] - expected) ** 2 / (expected * 0.75) for n in range(40))
    assert spread < 80, "chi square with 39 degrees of freedom, far beyond its 99.99th percentile"


def test_judges_that_share_a_rate_see_the_same_traces_and_a_higher_rate_sees_them_too() -> None:
    dice = random.Random(1)
    ids = [uuid.UUID(int=dice.getrandbits(128)).bytes for _ in range(4000)]
    low, high = ({t for t in ids if share(t) < rate} for rate in (0.1, 0.3))
    assert low < high
    assert 300 < len(low) < 500
    sampled = {one.trace for one in draw([place(turn_hash(t.hex()), trace=t) for t in ids], 400)}
    assert 20 < len(sampled & low) < 70, "being drawn and being scored have nothing to do with each other"


def test_a_fingerprint_is_of_the_items_not_of_their_order() -> None:
    assert fingerprint(["a", "b"]) == fingerprint(["b", "a"]) != fingerprint(["a", "c"])
