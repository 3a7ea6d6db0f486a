"""Whatever the order of steps, RedisStore and its twin in memory hold and answer the same."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from agents.ports import Change, Places, Swaps
from evalcore.scoring.sampling import PooledTurn, number_of, turn_hash
from streams.redis.state import RedisStore
from tests.contract.redis.stores import all_turns, far, memory_store, now_ms

KEYS = st.sampled_from(["t2:a", "t2:b", "t2:ü", "s2:a", "w2:x:0"])
COUNTERS = st.sampled_from(["c2:1", "c2:2"])
IDS = st.sampled_from(["a", "b", "c", "ü"])
VALUES = st.binary(max_size=40) | st.sampled_from([255, 256, 65_535, 65_536]).map(lambda size: b"v" * size)
GONE = st.sampled_from([False, False, False, True])
"""Whether the expiry lies in the past."""


class Both(RuleBasedStateMachine):
    """One Redis under a prefix of its own beside one twin; every answer is compared."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.real = RedisStore(self.url, f"{uuid.uuid4().hex}:")
        self.twin = memory_store()
        self.placed: dict[str, set[bytes]] = {"p2:1": set(), "p2:2": set()}

    def same(self, method: str, *args: Any) -> Any:
        real = self.runner.run(getattr(self.real, method)(*args))
        twin = self.runner.run(getattr(self.twin, method)(*args))
        assert real == twin, f"{method}{args}: Redis {real!r}, the twin {twin!r}"
        return real

    @rule(
        right=st.sets(KEYS),
        wrong=st.dictionaries(KEYS, VALUES, max_size=1),
        sets=st.dictionaries(KEYS, st.tuples(VALUES, GONE)),
        counts=st.dictionaries(
            COUNTERS, st.tuples(GONE, st.dictionaries(st.sampled_from("xyz"), st.integers(-2, 2), max_size=3))
        ),
        due=st.dictionaries(IDS, st.none() | st.integers(0, 100)),
        due_by=st.dictionaries(IDS, st.integers(0, 100)),
        swaps=st.dictionaries(KEYS, st.tuples(st.none() | VALUES, VALUES, GONE), max_size=3),
    )
    def apply(self, right: set[str], wrong: Any, sets: Any, counts: Any, due: Any, due_by: Any, swaps: Any) -> None:
        keys = sorted(right)
        checks = dict(zip(keys, self.same("read", keys), strict=True)) | wrong
        for key in swaps:
            checks.pop(key, None)
            sets.pop(key, None)
        held = self.same("read", list(swaps))
        before = [then if then is not None else now for now, (then, _, _) in zip(held, swaps.values(), strict=True)]
        ends = {True: now_ms() - 1_000, False: far()}
        change = Change(
            checks,
            {key: (value, ends[gone]) for key, (value, gone) in sets.items()},
            {key: (ends[gone], fields) for key, (gone, fields) in counts.items()},
            due,
            due_by,
            Swaps(
                list(swaps), before, [value for _, value, _ in swaps.values()], [ends[g] for *_, g in swaps.values()]
            ),
        )
        self.same("apply", change)

    @rule(
        key=st.sampled_from(["p2:1", "p2:2"]),
        turns=st.dictionaries(
            st.integers(0, 30), st.none() | st.tuples(*[st.integers(0, 2)] * 5), min_size=1, max_size=12
        ),
    )
    def place(self, key: str, turns: dict[int, Any]) -> None:
        """Turns enter, change or leave; as their own state says, each had a place or had none."""
        found, placed = {}, self.placed[key]
        for number, place in turns.items():
            turn = turn_hash(f"turn {number}")
            member = b""
            if place is not None:
                ended, trace, partition, offset, stamp = place
                member = PooledTurn(turn, 2**40 + ended, bytes([127 * trace]) * 16, partition, offset, stamp).pack()
            found[turn] = turn in placed, member
            (placed.add if member else placed.discard)(turn)
        self.same("apply", Change(places={key: Places(f"pe{key[1:]}", far(), 8, found)}))

    @rule(now=st.integers(0, 120), limit=st.integers(0, 5), lease=st.integers(1, 50))
    def claim(self, now: int, limit: int, lease: int) -> None:
        self.same("claim_due", now, limit, lease)

    @rule(key=KEYS, value=VALUES, gone=GONE, expected=st.just(b"") | VALUES, right=st.booleans())
    def start(self, key: str, value: bytes, gone: bool, expected: bytes, right: bool) -> None:
        held = self.same("read", [key])[0]
        self.same("start_at", key, value, now_ms() - 1_000 if gone else far(), held if right else expected)

    @invariant()
    def hold_the_same(self) -> None:
        self.same("read", ["t2:a", "t2:b", "t2:ü", "s2:a", "w2:x:0", "nobody"])
        self.same("counts", ["c2:1", "c2:2", "nobody"])
        pools, edges = ["p2:1", "p2:2"], ["pe2:1", "pe2:2"]
        _, rims, members, sizes = self.same("at_once", ["t2:a", "nobody"], edges, pools, pools)
        assert sizes == list(map(len, members))
        for key, rim, held in zip(pools, rims, members, strict=True):
            assert len(held) + rim.get("beyond", 0) == len(self.placed[key]), "each turn has its place, or is beyond"
            assert len(held) <= 8
            assert all(number_of(one) < rim.get("edge", 2**44) for one in held)

    @rule()
    def list_turns(self) -> None:
        real, twin = (self.runner.run(all_turns(store)) for store in (self.real, self.twin))
        assert real == {rid: blob for rid, blob in twin.items() if blob}

    def teardown(self) -> None:
        self.runner.run(self.real.close())
        self.runner.close()


def test_the_store_and_its_twin_can_not_be_told_apart(redis_url: str) -> None:
    Both.url = redis_url
    run_state_machine_as_test(Both, settings=settings(max_examples=25, stateful_step_count=20))
