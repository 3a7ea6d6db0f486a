"""Ramp-step records on a real Kafka and Redis: each ends in one state, through restarts and a flush (promises 2, 3)."""

from __future__ import annotations

import asyncio

from schemas.answers import Balance
from tests.stream.gates.ramp_rig import Rig, by_request, step
from tests.waiting import come


def states(balance: Balance) -> tuple[int, ...]:
    assert balance.difference == 0
    assert (balance.parked, balance.filtered) == (0, 0)
    return balance.consumed, balance.done, balance.superseded, balance.dead_lettered


async def test_each_record_is_counted_once_through_restarts_and_a_flush(rig: Rig) -> None:
    """Good, invalid, repeated, conflicting and malformed ones, and a gate that is under way all the while."""
    rig.scoring.hold = asyncio.Event()
    await rig.start()
    good, between = step("good"), step("between", from_percent=5, to_percent=25)
    await rig.send("ramp-steps", step("long"), good, between, good, step("invalid", to_percent=101), b"{", b"null")
    await rig.send("ramp-steps", step("good", to_percent=7), between)
    assert states(await rig.counted(8)) == (8, 3, 2, 3)
    assert (await rig.balance()).reasons["dead_lettered"] == {"conflicting_duplicate": 1, "malformed": 2}
    await rig.stop()
    worker = await rig.start()
    await come(lambda: rig.scoring.began.count("long") == 2)
    assert states(await rig.counted(8)) == (8, 3, 2, 3), "what is read again is not counted again"
    assert len(await rig.letters()) == 3, "nor is a letter sent again"
    await worker.parts.store.redis.flushdb()
    assert states(await rig.counted(8)) == (8, 3, 2, 3), "after a flush they are counted anew, each as it was"
    rig.scoring.hold.set()
    assert states(await rig.counted(9)) == (9, 4, 2, 3)
    assert set(by_request(await rig.verdicts(4))) == {"long", "good", "between", "invalid"}
