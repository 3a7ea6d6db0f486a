"""The sample is the traffic: whatever natural order turns, records and signals come in, a gate is shown the turns that
there were, by their last answers, and says so. An oracle of its own judges it (`tests/samples/oracle.py`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import pytest

from rampgate.local.services.redis import RedisServer
from tests.memory_ports import ManualClock
from tests.samples.natural_orders import (
    HAPPENINGS,
    NEW_NAMES,
    ORDERS,
    Order,
    posted_often,
    same_end_again,
    several_traces,
    traffic,
)
from tests.samples.oracle import Bounds, differences, expected
from tests.samples.product import BOUNDS, FEW_NAMES, HOUR, MemoryState, Product, RedisState, registry, run

START = 1_800_000_000_000 - 1_800_000_000_000 % HOUR
VERSIONS = 5
"""Of a world; of each two gates are asked."""


def orders_of(seed: int) -> list[Order]:
    """All orders take part in four worlds in a row."""
    return [ORDERS[(seed * VERSIONS + number) % len(ORDERS)] for number in range(VERSIONS)]


async def wrongs(
    seed: int,
    orders: Sequence[Order],
    happening: str,
    turns: int = 0,
    limits: Mapping[str, Bounds] = BOUNDS,
    state: Callable[[ManualClock], MemoryState | RedisState] = MemoryState,
    start: int = START,
) -> list[str]:
    """One line for each difference between a world's verdicts and the oracle."""
    made = traffic(seed, start, orders, happening, turns)
    clock = ManualClock(start)
    most = FEW_NAMES if happening == NEW_NAMES else 1_000
    product = Product(clock, state(clock), most)
    await run(made, product)
    out = []
    for number, ask in enumerate(made.asks):
        bounds = limits[ask.milestone]
        must = expected(made, ask, bounds.window)
        told = await product.told(ask, number, registry(ask.scope, tuple(limits.items())))
        where = f"seed {seed}, {happening}, {ask.version}, {ask.vertical or 'all'}, {ask.milestone}, {ask.scope}"
        out += [f"{where}: {line}" for line in differences(must, told, bounds, stranger=ask.version in made.strangers)]
    return out


async def no_difference(seeds: Sequence[int]) -> None:
    began, out, asked = time.monotonic(), list[str](), 0
    for seed in seeds:
        out += await wrongs(seed, orders_of(seed), HAPPENINGS[seed % len(HAPPENINGS)])
        asked += 2 * VERSIONS
    print(f"seeds {seeds[0]} to {seeds[-1]}: {asked} gates in {time.monotonic() - began:.1f} s, {len(out)} differences")
    assert out == [], summary(out)


def summary(lines: Sequence[str]) -> str:
    """The worst first: what passes wrongly, what fails wrongly, all else."""
    order = ("a bad version passes", "a good version fails")
    ranked = sorted(lines, key=lambda line: next((n for n, words in enumerate(order) if words in line), len(order)))
    counts = {words: sum(words in line for line in lines) for words in order}
    return "\n".join([f"{counts}, {len(lines)} differences in all", *ranked[:40]])


async def test_each_order_of_turns_is_seen_by_its_gates_as_it_was() -> None:
    """Some 260 gates: every order as a bad and as a good version, and every happening."""
    await no_difference(range(24))


@pytest.mark.slow
async def test_a_thousand_gates_see_the_traffic_as_it_was() -> None:
    await no_difference(range(100, 200))


@pytest.mark.parametrize("seed", [0, 1], ids=["bad", "good"])
@pytest.mark.parametrize("order", [posted_often, several_traces, same_end_again])
async def test_turns_of_many_records_take_one_place_of_a_pool_each(order: Order, seed: int) -> None:
    """700 turns in ten minutes, more than a pool has places: the gate draws 200 of them, each by its last answer."""
    limits = {name: Bounds(200, 100, one.window) for name, one in BOUNDS.items()}
    out = await wrongs(seed, [order], "nothing", 700, limits)
    assert out == [], summary(out)


@pytest.mark.slow
async def test_the_gates_see_the_same_with_a_real_redis() -> None:
    """Nine hours that end now: Redis drops by its own clock what is too old."""
    hours = 9 * HOUR
    start = time.time_ns() // 1_000_000 // HOUR * HOUR - hours
    with RedisServer() as server:
        out = []
        for seed in range(8):
            stores: list[RedisState] = []

            def state(_: ManualClock, stores: list[RedisState] = stores) -> RedisState:
                stores.append(RedisState(server.url, "rg:"))
                return stores[-1]

            out += await wrongs(seed, orders_of(seed), HAPPENINGS[seed], state=state, start=start)
            await stores[0].empty()
            await stores[0].close()
    assert out == [], summary(out)
