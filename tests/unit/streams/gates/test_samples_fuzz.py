"""The sample is the traffic: whatever natural order turns, records and signals come in, a gate is shown the turns that
there were, by their last answers, and says so. An oracle of its own judges it (`tests/samples/oracle.py`)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import pytest

from tests.memory_ports import ManualClock, MemoryStore
from tests.samples.natural_orders import HAPPENINGS, ORDERS, Order, posted_often, traffic
from tests.samples.oracle import Bounds, differences, expected
from tests.samples.product import BOUNDS, HOUR, NEW_NAMES, Product, registry, run
from tests.samples.turns import Ask

START = 1_800_000_000_000 - 1_800_000_000_000 % HOUR
VERSIONS = 5
"""Of a world; of each two gates are asked."""


def orders_of(seed: int) -> list[Order]:
    """All orders take part in four worlds in a row."""
    return [ORDERS[(seed * VERSIONS + number) % len(ORDERS)] for number in range(VERSIONS)]


async def wrongs(seed: int, orders: Sequence[Order], happening: str) -> list[str]:
    """One line for each difference between a world's verdicts and the oracle."""
    made = traffic(seed, START, orders, happening)
    clock = ManualClock(START)
    names = NEW_NAMES if happening == "restart and new names" else 1_000
    product = Product(clock, MemoryStore(clock), names)
    await run(made, product)
    out = []
    for number, ask in enumerate(made.asks):
        bounds = BOUNDS[ask.milestone]
        must = expected(made, ask, bounds.window)
        told = await product.told(ask, number, registry(ask.scope))
        where = f"seed {seed}, {happening}, {ask.version}, {ask.vertical or 'all'}, {ask.milestone}, {ask.scope}"
        out += [f"{where}: {line}" for line in differences(must, told, bounds)]
    return out


async def no_difference(seeds: Sequence[int]) -> None:
    began, out, asked = time.monotonic(), list[str](), 0
    for seed in seeds:
        out += await wrongs(seed, orders_of(seed), HAPPENINGS[seed % len(HAPPENINGS)])
        asked += 2 * VERSIONS
    gates = {line.rpartition(": ")[0] for line in out}
    print(f"seeds {seeds[0]} to {seeds[-1]}: {asked} gates in {time.monotonic() - began:.1f} s, {len(out)} differences")
    kinds = Counter(line.split(": ")[1].split(" ")[0] for line in out)
    assert out == [], "\n".join([f"{len(gates)} of {asked} gates: {kinds}", *out[:40]])


async def test_sixty_gates_see_the_traffic_as_it_was() -> None:
    await no_difference(range(6))


@pytest.mark.slow
async def test_five_hundred_gates_see_the_traffic_as_it_was() -> None:
    await no_difference(range(100, 150))
