"""Dead letters at their edges: where a replay sends them, how long duplicates are known, from where a topic is read."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from schemas.dead_letters import HEAD_BYTES, DeadLetter
from schemas.outcomes import Cause
from streams.dead_letters.reader import Duplicates
from streams.kafka.reading import SLACK_MS, spans_of
from tests.unit.agents.builders import NOW, Rec
from tests.unit.streams.dead_letters.replay_bench import Bench, chunks, letter

PLACES = [TopicPartition("rampgate.dead-letters", number) for number in range(2)]


@pytest.mark.parametrize(("came_from", "goes_to"), [(0, 0), (3, 3), (4, None), (-1, None)])
async def test_a_replay_sends_a_letter_to_the_partition_it_came_from_or_by_key_where_that_is_gone(
    came_from: int, goes_to: int | None
) -> None:
    bench = Bench()
    await bench.replay().run(chunks(letter(partition=came_from)))
    assert [partition for _, partition, *_ in bench.log.sent] == [goes_to]


def test_so_many_letters_are_remembered_for_their_doubles_and_no_more() -> None:
    duplicates, letters = Duplicates(remembered=3), [letter(offset=number) for number in range(5)]
    assert [duplicates.seen(one) for one in letters[:3]] == [False] * 3
    assert duplicates.seen(letters[0]), "the third to last"
    assert not duplicates.seen(letters[3])
    assert not duplicates.seen(letters[1]), "it was the oldest when the fourth came"
    assert duplicates.seen(letters[0])


def test_a_letter_says_when_its_record_was_made_and_when_it_failed() -> None:
    record = Rec(b"{bad", timestamp=NOW - 5_000)
    _, _, headers = DeadLetter(record, Cause.MALFORMED, "d", "s", NOW).encode(1_000_000)
    found = dict(headers)
    assert (found["rampgate.timestamp"], found["rampgate.failed-at"]) == (b"%d" % (NOW - 5_000), b"%d" % NOW)


def test_a_letter_that_was_cut_has_the_digest_of_the_whole_value() -> None:
    value = b"x" * 100_000 + b"the end"
    _, kept, headers = DeadLetter(Rec(value), Cause.MALFORMED, "d", "s", NOW).encode(50_000)
    found = dict(headers)
    assert kept == value[:HEAD_BYTES]
    assert found["rampgate.original-sha256"].decode() == hashlib.sha256(value).hexdigest()
    assert found["rampgate.original-length"] == b"%d" % len(value)


class Index:
    """A consumer of a topic whose two partitions hold the records [10, 100) and none. It notes which times it is asked
    for; `times` are its answers, None where no record is that late."""

    def __init__(self, at: int | None, indexed: bool = True) -> None:
        self.at, self.indexed = at, indexed
        self.asked: list[int] = []

    async def beginning_offsets(self, places: Any) -> dict[TopicPartition, int]:
        return {PLACES[0]: 10, PLACES[1]: 7}

    async def end_offsets(self, places: Any) -> dict[TopicPartition, int]:
        return {PLACES[0]: 100, PLACES[1]: 7}

    async def offsets_for_times(self, times: dict[TopicPartition, int]) -> dict[TopicPartition, Any]:
        moment = times[PLACES[0]]
        self.asked.append(moment)
        at = self.at if moment else 10
        found = SimpleNamespace(offset=at) if self.indexed and at is not None else None
        return dict.fromkeys(times, found)


@pytest.mark.parametrize(("at", "span"), [(40, (40, 100)), (3, (10, 100)), (100, (100, 100)), (None, (100, 100))])
async def test_a_topic_is_read_from_a_time_on_with_slack_for_clocks_that_differ(
    at: int | None, span: tuple[int, int]
) -> None:
    index: Any = Index(at)
    assert await spans_of(index, PLACES, NOW) == {PLACES[0]: span, PLACES[1]: (7, 7)}
    assert index.asked == [0, NOW - SLACK_MS]
    assert SLACK_MS >= 60_000


async def test_a_broker_without_an_index_by_time_has_its_topic_read_whole() -> None:
    index: Any = Index(None, indexed=False)
    assert await spans_of(index, PLACES, NOW) == {PLACES[0]: (10, 100), PLACES[1]: (7, 7)}


async def test_without_a_time_a_topic_is_read_whole_and_of_a_partition_without_records_nothing() -> None:
    index: Any = Index(40)
    assert await spans_of(index, PLACES, None) == {PLACES[0]: (10, 100), PLACES[1]: (7, 7)}
