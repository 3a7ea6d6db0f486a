"""What every Store and its leases promise: one suite on RedisStore with a real Valkey, and on its twin in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from agents.ports import Change, Pool, Swaps, Unavailable
from streams.redis import state
from streams.redis.state import RedisStore
from tests.contract.redis.stores import KINDS, Either, all_turns, far, memory_store, now_ms, pages

BRIEF = 800
"""Milliseconds that a value lives: enough for a slow machine to do meanwhile what a test does."""


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Either]:
    if request.param == "memory":
        yield memory_store()
        return
    real = RedisStore(request.getfixturevalue("redis_url"), "rg:")
    yield real
    await real.close()


async def over() -> None:
    """What was to live briefly has lived."""
    await asyncio.sleep(1.25 * BRIEF / 1000)


async def put(store: Either, **values: bytes) -> None:
    assert await store.apply(Change(sets={key: (value, far()) for key, value in values.items()})) == []


async def test_values_come_in_the_order_asked_for_and_absent_ones_are_empty(store: Either) -> None:
    await put(store, a=b"1", b=b"2")
    assert await store.read(["b", "nobody", "a", "b"]) == [b"2", b"", b"1", b"2"]
    assert await store.read([]) == []


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 255, 256, 257, 65_535, 65_536, 65_537, 1_100_000])
async def test_any_bytes_of_any_length_come_back_as_they_were(store: Either, size: int) -> None:
    value = (bytes(range(256)) * (size // 256 + 1))[:size]
    await put(store, key=value)
    assert await store.read(["key"]) == [value]
    assert await store.apply(Change(checks={"key": value}, sets={"key": (b"next", far())})) == [], (
        "the check has to see the very same bytes"
    )
    assert await store.read(["key"]) == [b"next"]


async def test_names_may_hold_any_text(store: Either) -> None:
    names = ["t2:" + name for name in ("ü", "a b", "日本語", '"', "{x}", "*", "\n", "x" * 512)]
    assert await store.apply(Change(sets={name: (name.encode(), far()) for name in names})) == []
    assert await store.read(names) == [name.encode() for name in names]
    assert await all_turns(store) == {name[3:]: name.encode() for name in names}


async def test_one_failed_check_changes_nothing_and_names_the_cells(store: Either) -> None:
    await put(store, a=b"1", b=b"2")
    change = Change(
        checks={"a": b"1", "b": b"other", "c": b"gone"},
        sets={"a": (b"9", far()), "new": (b"9", far())},
        counts={"k": (far(), {"n": 1})},
        due={"r": 1},
    )
    assert await store.apply(change) == ["b", "c"]
    assert await store.read(["a", "b", "new"]) == [b"1", b"2", b""]
    assert await store.counts(["k"]) == [{}]
    assert await store.claim_due(10, 10, 10) == []


async def test_swaps_happen_all_or_none_and_with_the_rest_of_the_step(store: Either) -> None:
    await put(store, a=b"1", b=b"2")
    wrong = Swaps(["a", "b", "c"], [b"1", b"other", b""], [b"3", b"4", b"5"], [far()] * 3)
    right = Swaps(["a", "b", "c"], [b"1", b"2", b""], [b"30", b"", b"5" * 300], [far(), far(), now_ms() + BRIEF])
    rest = {"checks": {"w": b""}, "sets": {"w": (b"7", far()), "x": (b"8", far())}, "counts": {"k": (far(), {"n": 1})}}
    assert await store.apply(Change(swaps=wrong, **rest)) == ["b"]
    assert await store.read(["a", "b", "c", "w", "x"]) == [b"1", b"2", b"", b"", b""]
    assert await store.apply(Change(swaps=right, **rest)) == []
    assert await store.read(["a", "b", "c", "w", "x"]) == [b"30", b"", b"5" * 300, b"7", b"8"]
    assert await store.counts(["k"]) == [{"n": 1}]
    await over()
    assert await store.read(["c"]) == [b""]
    assert await store.apply(Change(swaps=wrong, checks={"w": b""})) == ["a", "b", "w"]


async def test_a_check_for_absence_holds_only_while_the_cell_is_absent(store: Either) -> None:
    first, second = (Change(checks={"a": b""}, sets={"a": (value, far())}) for value in (b"1", b"2"))
    assert await store.apply(first) == []
    assert await store.apply(second) == ["a"]
    assert await store.read(["a"]) == [b"1"]


async def test_of_two_steps_that_read_the_same_one_applies(store: Either) -> None:
    changes = [Change(checks={"a": b""}, sets={"a": (b"%d" % n, far())}) for n in range(8)]
    outcomes = await asyncio.gather(*(store.apply(change) for change in changes))
    assert sorted(map(len, outcomes)) == [0] + [1] * 7
    (winner,) = (n for n, outcome in enumerate(outcomes) if not outcome)
    assert await store.read(["a"]) == [b"%d" % winner]


async def test_a_value_is_gone_after_its_expiry_and_its_absence_can_be_checked(store: Either) -> None:
    await store.apply(Change(sets={"t2:brief": (b"1", now_ms() + BRIEF), "t2:long": (b"2", far())}))
    assert await store.read(["t2:brief", "t2:long"]) == [b"1", b"2"]
    await over()
    assert await store.read(["t2:brief", "t2:long"]) == [b"", b"2"]
    assert await all_turns(store) == {"long": b"2"}
    assert await store.apply(Change(checks={"t2:brief": b""}, sets={"t2:brief": (b"3", far())})) == []


async def test_a_value_that_expired_before_it_was_set_is_absent_and_takes_the_old_one_along(store: Either) -> None:
    await put(store, a=b"old")
    assert await store.apply(Change(sets={"a": (b"new", now_ms() - 5_000), "b": (b"x", 1)})) == []
    assert await store.read(["a", "b"]) == [b"", b""]


async def test_the_last_expiry_of_a_value_counts(store: Either) -> None:
    await store.apply(Change(sets={"a": (b"1", now_ms() + BRIEF)}))
    await store.apply(Change(sets={"a": (b"1", far())}))
    await over()
    assert await store.read(["a"]) == [b"1"]


async def test_counters_add_up_and_a_zero_leaves_no_field(store: Either) -> None:
    for by in (3, -1, 40):
        await store.apply(Change(counts={"k": (far(), {"a": by, "b": 1}), "l": (far(), {"a": 1})}))
    assert await store.counts(["l", "k", "nobody"]) == [{"a": 3}, {"a": 42, "b": 3}, {}]
    await store.apply(Change(counts={"k": (far(), {"a": -42})}))
    assert await store.counts(["k"]) == [{"b": 3}]
    await store.apply(Change(counts={"k": (far(), {"b": -4})}))
    assert await store.counts(["k"]) == [{"b": -1}], "below zero is shown, not hidden"
    await store.apply(Change(counts={"k": (far(), {"b": 1})}))
    assert await store.counts(["k"]) == [{}]


async def test_counters_expire_whole_and_start_again_from_nothing(store: Either) -> None:
    await store.apply(Change(counts={"k": (now_ms() + BRIEF, {"a": 5})}))
    await over()
    assert await store.counts(["k"]) == [{}]
    await store.apply(Change(counts={"k": (far(), {"a": 2})}))
    assert await store.counts(["k"]) == [{"a": 2}]


async def test_a_counter_lives_until_the_expiry_given_last(store: Either) -> None:
    await store.apply(Change(counts={"k": (now_ms() + BRIEF, {"a": 1})}))
    await store.apply(Change(counts={"k": (far(), {"a": 1})}))
    await over()
    assert await store.counts(["k"]) == [{"a": 2}]
    await store.apply(Change(counts={"k": (now_ms() - 1_000, {"a": 1})}))
    assert await store.counts(["k"]) == [{}], "an hour that left the window is not kept"


async def test_what_is_due_comes_in_order_within_the_limit(store: Either) -> None:
    await store.apply(Change(due={"late": 300, "b": 100, "a": 100, "early": 50, "never": 10_000}))
    assert await store.claim_due(299, 2, 1_000) == ["early", "a"]
    assert await store.claim_due(300, 10, 1_000) == ["b", "late"]
    assert await store.claim_due(300, 10, 1_000) == []
    assert await store.claim_due(9_999, 0, 1_000) == []


async def test_what_was_claimed_comes_back_when_its_lease_ends(store: Either) -> None:
    await store.apply(Change(due={"r": 100}))
    assert await store.claim_due(200, 10, 50) == ["r"]
    assert await store.claim_due(249, 10, 50) == []
    assert await store.claim_due(250, 10, 50) == ["r"]


async def test_a_step_moves_or_ends_what_is_due(store: Either) -> None:
    await store.apply(Change(due={"moved": 100, "ended": 100}))
    await store.claim_due(100, 10, 1_000)
    await store.apply(Change(due={"moved": 150, "ended": None, "unknown": None}))
    assert await store.claim_due(5_000, 10, 1) == ["moved"]


async def test_what_is_due_by_a_time_is_not_put_off(store: Either) -> None:
    await store.apply(Change(due={"earlier": 100, "later": 900}))
    await store.apply(Change(due_by={"earlier": 500, "later": 500, "new": 500}))
    assert await store.claim_due(100, 10, 10_000) == ["earlier"]
    assert await store.claim_due(500, 10, 10_000) == ["later", "new"]


async def test_a_turn_that_one_reason_gives_up_and_another_looks_at_by_a_time_is_looked_at(store: Either) -> None:
    """Else a doubt about its scores would never be looked into."""
    await store.apply(
        Change(due={"new": None, "known": None, "moved": 900}, due_by={"new": 500, "known": 500, "moved": 500})
    )
    assert await store.claim_due(499, 10, 10_000) == []
    assert await store.claim_due(500, 10, 10_000) == ["known", "moved", "new"]


async def test_two_claimants_never_get_the_same_turn(store: Either) -> None:
    await store.apply(Change(due={f"r{n}": n for n in range(200)}))
    taken = await asyncio.gather(*(store.claim_due(1_000, 30, 60_000) for _ in range(10)))
    every = [rid for claimed in taken for rid in claimed]
    assert len(every) == len(set(every)) == 200


async def test_a_cell_is_started_once_and_says_what_it_holds(store: Either) -> None:
    assert await store.start_at("w2:x:0", b"5", far(), b"") == b"5"
    assert await store.start_at("w2:x:0", b"9", far(), b"") == b"5", "somebody was first"
    assert await store.start_at("w2:x:0", b"9", far(), b"5") == b"9"
    assert await store.start_at("nobody", b"9", far(), b"5") == b"", "what is absent is not what was expected"
    assert await store.read(["w2:x:0", "nobody"]) == [b"9", b""]


async def test_a_cell_that_expired_is_started_anew(store: Either) -> None:
    assert await store.start_at("w", b"1", now_ms() + BRIEF, b"") == b"1"
    await over()
    assert await store.start_at("w", b"2", far(), b"1") == b""
    assert await store.start_at("w", b"2", far(), b"") == b"2"


async def test_every_turn_is_listed_by_the_page_and_nothing_else_is(
    store: Either, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "PAGE", 100)
    turns = {f"r-{n}": b"blob %d" % n for n in range(1_500)}
    sets = {"t2:" + rid: (blob, far()) for rid, blob in turns.items()}
    await store.apply(Change(sets=sets | {"s2:session": (b"s", far()), "w2:x:0": (b"1", far())}, due={"r-1": 1}))
    await store.apply(Change(counts={"c2:1": (far(), {"a": 1})}))
    seen: dict[str, bytes] = {}
    async for page in pages(store):
        seen.update(page)
    assert seen == turns


async def test_a_step_of_many_thousand_cells_is_one_step(store: Either) -> None:
    """More than Redis' Lua can take off its stack at once: 12,000 keys, 9,001 due times, 9,001 no longer due."""
    keys = [f"t2:{n}" for n in range(12_000)]
    sets = {key: (key.encode(), far()) for key in keys}
    due = {f"d{n}": 1 for n in range(9_001)}
    assert await store.apply(Change(checks=dict.fromkeys(keys, b""), sets=sets, due=dict(due))) == []
    assert await store.read(keys) == [key.encode() for key in keys]
    checks = {key: key.encode() for key in keys} | {"t2:3999": b"x", "t2:4000": b"x", "t2:11999": b"x"}
    assert await store.apply(Change(checks=checks, sets=sets)) == ["t2:3999", "t2:4000", "t2:11999"]
    undue: dict[str, int | None] = dict.fromkeys(due)
    assert await store.apply(Change(due={**undue, "left": 1})) == []
    assert await store.claim_due(10, 20_000, 1) == ["left"]
    counts = {f"c2:{n}": (far(), {"a": n + 1}) for n in range(1_200)}
    assert await store.apply(Change(counts=counts)) == []
    assert await store.counts(list(counts)) == [{"a": n + 1} for n in range(1_200)]


@pytest.mark.parametrize("prefix", ["rg[1]:", "a*b?", "\\x^-:", "ü{t}:"])
async def test_a_prefix_may_be_any_text_and_keeps_stores_apart(redis_url: str, prefix: str) -> None:
    mine, other = RedisStore(redis_url, prefix), RedisStore(redis_url, "rg1:")
    await put(mine, **{"t2:a": b"1"})
    await put(other, **{"t2:b": b"2"})
    assert await all_turns(mine) == {"a": b"1"}
    assert await all_turns(other) == {"b": b"2"}
    await mine.close()
    await other.close()


async def test_a_pool_keeps_its_lowest_members_whatever_order_they_come_in(store: Either) -> None:
    numbers = {b"%03d\x00\xff" % n: (n * 7_919_777_777) % 2**44 for n in range(300)}
    lowest = sorted(numbers, key=lambda member: (numbers[member], member))[:50]
    members = list(numbers.items())
    for part in (members[200:], members[:120], members[100:220], members[:10]):
        assert await store.apply(Change(pools={"p:1": Pool(far(), 50, dict(part))})) == []
    assert await store.pools(["p:1", "p:2"]) == [lowest, []]


async def test_a_failed_check_adds_nothing_to_a_pool_and_a_pool_expires(store: Either) -> None:
    assert await store.apply(Change(checks={"a": b"1"}, pools={"p:1": Pool(far(), 5, {b"m": 1})})) == ["a"]
    assert await store.apply(Change(pools={"p:2": Pool(now_ms() + BRIEF, 5, {b"m": 1})})) == []
    await over()
    assert await store.pools(["p:1", "p:2"]) == [[], []]


LONG = 60_000
SHORT = 150


async def test_one_owner_holds_it_at_a_time_and_may_ask_again(store: Either) -> None:
    first, second = store.lease("x", LONG, "a"), store.lease("x", LONG, "b")
    assert [await first.acquire(), await second.acquire(), await first.acquire()] == [True, False, True]
    assert [await first.held(), await second.held()] == [True, False]
    again = store.lease("x", LONG, "a")
    assert await again.held(), "the owner's name counts, not the object"
    assert await store.lease("y", LONG, "b").acquire(), "another key is another lease"


async def test_of_many_who_ask_at_once_one_gets_it(store: Either) -> None:
    leases = [store.lease("x", LONG) for _ in range(20)]
    assert sum(await asyncio.gather(*(lease.acquire() for lease in leases))) == 1


async def test_only_its_owner_gives_it_up(store: Either) -> None:
    first, second = store.lease("x", LONG, "a"), store.lease("x", LONG, "b")
    assert await first.acquire()
    await second.release()
    assert await first.held()
    await first.release()
    await first.release()
    assert await second.acquire()


async def test_it_ends_by_itself_and_is_then_not_renewed(store: Either) -> None:
    brief, other = store.lease("x", SHORT, "a"), store.lease("x", LONG, "b")
    assert await brief.acquire()
    await asyncio.sleep(2 * SHORT / 1000)
    assert [await brief.held(), await brief.renew()] == [False, False], "what it protected may be gone"
    assert await other.acquire()
    assert [await brief.renew(), await brief.acquire()] == [False, False]
    await brief.release()
    assert await other.held()


@pytest.mark.parametrize("keep", ["renew", "acquire"])
async def test_who_holds_it_prolongs_it(store: Either, keep: str) -> None:
    held = store.lease("x", 4 * SHORT, "a")
    assert await held.acquire()
    for _ in range(4):
        await asyncio.sleep(1.5 * SHORT / 1000)
        assert await getattr(held, keep)()
    assert not await store.lease("x", LONG, "b").acquire()


async def test_a_step_that_checks_it_is_applied_only_while_it_is_held(store: Either) -> None:
    lease = store.lease("x", LONG)
    assert await lease.acquire()
    step = Change(checks={lease.key: lease.value}, sets={"done": (b"1", far())})
    assert await store.apply(step) == []
    await lease.release()
    assert await store.apply(step) == ["x"]


async def test_a_redis_that_is_away_is_said_to_be() -> None:
    store = RedisStore("redis://127.0.0.1:1", "lease:", timeout=0.2, tries=1)
    lease = store.lease("x", LONG)
    for method in (lease.acquire, lease.renew, lease.held, lease.release):
        with pytest.raises(Unavailable):
            await method()
    await store.close()
