"""Conservation of ramp-step records: each in one state, once, however it is read (contracts §2, promises 2, 3)."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.join.batches import Batch
from agents.ports import Change, Unavailable
from agents.ramp_steps import Ended, RampCounting, counted, inside, joined, written
from tests.unit.agents.builders import Rec
from tests.unit.streams.gates.gate_world import LOOKBACK, TOPIC, State, Worker, quicken, request
from tests.waiting import come


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    quicken(monkeypatch)


MIX = request("r"), request("r"), request("r", to_percent=50), b"{", request("s", to_percent="x")
ENDS = {
    "consumed": 5,
    "done": 2,
    "superseded": 1,
    "dead_lettered:conflicting_duplicate": 1,
    "dead_lettered:malformed": 1,
}


async def test_every_record_ends_in_one_state() -> None:
    worker = Worker()
    await worker.read(*MIX)
    await come(lambda: worker.acked)
    assert worker.state.conservation() == ENDS


async def test_what_was_counted_is_told_to_the_metrics_once() -> None:
    worker = Worker()
    await worker.read(*MIX)
    await come(lambda: worker.acked)
    told = {name: sum(report.counts.get(("ramp_step", name), 0) for report in worker.reports) for name in ENDS}
    assert told == ENDS


async def test_a_request_whose_gate_runs_is_not_consumed_yet_and_those_beside_it_are() -> None:
    worker = Worker(slow={"long": asyncio.Event()})
    await worker.read(request("long"), request("beside"))
    await come(lambda: worker.state.counters)
    assert worker.state.conservation() == {"consumed": 1, "done": 1}
    worker.slow["long"].set()
    await come(lambda: worker.acked)
    assert worker.state.conservation() == {"consumed": 2, "done": 2}


async def test_records_that_are_read_again_are_not_counted_again() -> None:
    worker = Worker()
    await worker.read(*MIX)
    await come(lambda: worker.acked)
    again = Worker(topic=worker.topic, state=worker.state)
    await again.read(*MIX[:2])
    await again.read(*MIX[2:], base=2)
    await come(lambda: len(again.acked) == 2)
    assert worker.state.conservation() == ENDS
    assert again.letters.letters == [], "a letter is not sent again, though a gate may have held its commit"


async def test_a_crash_between_verdict_and_count_counts_it_once_as_done() -> None:
    first = Worker()
    first.state.away = True
    await first.read(request("r"), request("r"))
    await come(lambda: first.verdicts)
    await first.requests.stop(1.0)
    assert (first.acked, first.state.conservation()) == ([], {})
    first.state.away = False
    second = Worker(topic=first.topic, state=first.state)
    await second.read(request("r"), request("r"))
    await come(lambda: second.acked)
    assert second.verdicts == ["r"]
    assert second.state.conservation() == {"consumed": 2, "done": 1, "superseded": 1}


async def test_while_redis_is_away_the_verdict_is_published_once_and_nothing_is_acknowledged() -> None:
    worker = Worker()
    worker.state.away = True
    await worker.read(request("r"))
    await come(lambda: worker.verdicts)
    await asyncio.sleep(0.1)
    assert worker.acked == []
    worker.state.away = False
    await come(lambda: worker.acked)
    assert (worker.verdicts, worker.state.conservation()) == (["r"], {"consumed": 1, "done": 1})


async def test_after_redis_was_emptied_reading_again_counts_the_same() -> None:
    """Also with a request that is no longer remembered: it was answered, since its record was settled."""
    worker = Worker()
    await worker.read(*MIX, request("old"))
    await come(lambda: worker.acked)
    worker.state.flush()
    del worker.topic.held["old"]
    await worker.read(request("new"), base=6)
    await asyncio.sleep(0.1)
    assert worker.acked == [0], "without its watermark nothing of a partition is counted or acknowledged"
    worker.state.begin()
    worker.consumer.generation = 2
    letters = list(worker.letters.letters)
    await worker.read(*MIX, request("old"), settled=6)
    await worker.read(request("new"), base=6, settled=6)
    await come(lambda: len(worker.acked) == 3)
    assert worker.state.conservation() == ENDS | {"consumed": 7, "done": 4}
    assert worker.verdicts.count("old") == worker.verdicts.count("new") == 1
    assert worker.letters.letters == letters, "a letter that exists is not sent again"


async def test_the_same_request_on_two_partitions_at_two_workers_is_done_once_and_superseded_once() -> None:
    first = Worker(slow={"r": asyncio.Event()})
    second = Worker(topic=first.topic, state=first.state, slow=first.slow)
    await first.read(request("r"))
    await second.read(request("r"), partition=1)
    await come(lambda: first.begun and second.begun)
    first.slow["r"].set()
    await come(lambda: first.acked and second.acked)
    assert first.verdicts == ["r"]
    assert first.state.conservation() == {"consumed": 2, "done": 1, "superseded": 1}


async def test_two_bodies_under_one_id_at_two_workers_are_one_verdict_and_one_conflicting_duplicate() -> None:
    first = Worker(slow={"r": asyncio.Event()})
    second = Worker(topic=first.topic, state=first.state, slow=first.slow)
    await first.read(request("r"))
    await second.read(request("r", to_percent=50), partition=1)
    await come(lambda: first.begun and second.begun)
    first.slow["r"].set()
    await come(lambda: first.acked and second.acked)
    assert first.verdicts == ["r"]
    assert first.state.conservation() == {"consumed": 2, "done": 1, "dead_lettered:conflicting_duplicate": 1}
    assert len(first.letters.letters + second.letters.letters) == 1


class Unsure(State):
    """Lets others in between a read and its step, applies a step and then, often, says that it did not answer."""

    async def apply(self, change: Change) -> list[str]:
        await asyncio.sleep(0)
        failed = await super().apply(change)
        if random.random() < 0.5:
            raise Unavailable("timed out")
        return failed


@given(st.permutations(range(30)), st.sets(st.integers(0, 29)), st.randoms())
async def test_whatever_the_order_and_however_often_each_record_counts_once(
    order: list[int], again: set[int], chance: random.Random
) -> None:
    """Counters move by state, not by message. Two workers believe that the partition is
    theirs. Holes are offsets that compaction took."""
    offsets = sorted(chance.sample(range(100), 30))
    since = [0, *(offset + 1 for offset in offsets)]
    state = Unsure()
    workers = [RampCounting(state, state.clock, LOOKBACK, lambda report: None) for _ in range(2)]

    async def end(number: int, counting: RampCounting) -> None:
        record = Rec(b"", TOPIC, 0, offsets[number], 0, b"k", ())
        batch = Batch(TOPIC, 0, since[number], [record])
        while True:
            try:
                return await counting.end(batch, Ended(since[number], record, "done"))
            except Unavailable:
                continue

    await asyncio.gather(*map(end, [*order, *again], itertools.cycle(workers)))
    assert state.conservation() == {"consumed": 30, "done": 30}
    assert state.values[f"w2:{TOPIC}:0"][0] == str(offsets[-1] + 1).encode()


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)).map(lambda pair: (pair[0], sum(pair)))))
def test_offsets_that_are_counted_survive_being_written_down(spans: list[tuple[int, int]]) -> None:
    (_, mark), *above = joined([(0, 0), *spans])
    read = counted(mark, written(mark, above))
    for offset in range(60):
        assert inside(offset, read) == any(start <= offset < end for start, end in spans)


def test_what_was_noted_above_a_higher_watermark_is_of_a_topic_that_was_made_anew() -> None:
    assert counted(3, b"7 9-12") == [(0, 3)]


def test_where_kafka_forgets_what_nobody_has_read_what_was_counted_above_stays_counted() -> None:
    assert counted(10, b"7 9-12 14-15") == [(0, 12), (14, 15)]
