"""Who takes a partition over doubts what its last holder may have had under way, and nothing where that one stopped in
good order: then no score is written or looked at again for its sake."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions

from agents.join.turn import decode_turn
from agents.keys import turn_key
from streams.kafka.clean_stops import NOTE
from tests.fault.rig import Rig
from tests.fault.turns import Message
from tests.stream.plain_events import thumb, trace_event

TURNS = 6


class Turns:
    """Turns with traces; their thumbs come later."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.now = rig, datetime.now(UTC)
        self.names = [f"{rig.prefix}{number}" for number in range(TURNS)]
        rig.worker()
        self._tell("traces", [trace_event(name, "receipts", self.now) for name in self.names])

    def _tell(self, topic: str, events: list[dict[str, Any]]) -> None:
        self.rig.send([Message(topic, str(event["response_id"]), json.dumps(event).encode()) for event in events])
        self.rig.wait(f"all of {topic}", self.rig.drained)

    def doubted_after_thumbs(self) -> int:
        """How many of the turns are in doubt once each has heard a thumb."""
        self._tell("thumbs", [thumb(name, self.now) for name in self.names])
        stored = [self.rig.state.get(self.rig.prefix + turn_key(name)) for name in self.names]
        turns = [decode_turn(one) for one in stored if isinstance(one, bytes)]
        assert [turn.thumbs is not None for turn in turns] == [True] * TURNS
        return sum(bool(turn.doubt_until) for turn in turns)


def at_work(rig: Rig, workers: int) -> bool:
    """Whether the group has so many members, and all notes are taken."""
    (group,) = rig._admin.describe_consumer_groups([rig.group]).values()
    (offsets,) = rig._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(rig.group)]).values()
    found, noted = group.result(10), [tp for tp in offsets.result(10).topic_partitions if tp.metadata == NOTE]
    return found.state == ConsumerGroupState.STABLE and len(found.members) == workers and not noted


def stopped(rig: Rig) -> None:
    assert rig.workers[-1].terminate() == 0
    rig.worker()


def killed(rig: Rig) -> None:
    rig.workers[-1].kill()
    rig.worker()


def stopped_then_killed(rig: Rig) -> None:
    """Whoever starts takes the note away, before it has anything under way."""
    stopped(rig)
    rig.wait("the next worker's start", lambda: at_work(rig, 1))
    killed(rig)


def joined(rig: Rig) -> None:
    """A second worker, so that the first one gives all of its partitions away for a moment."""
    rig.worker()
    rig.wait("two workers", lambda: at_work(rig, 2))


@pytest.mark.parametrize(
    ("meanwhile", "doubted"), [(stopped, 0), (joined, 0), (killed, TURNS), (stopped_then_killed, TURNS)]
)
def test_after_a_stop_in_good_order_nothing_is_in_doubt(
    rig: Rig, meanwhile: Callable[[Rig], None], doubted: int
) -> None:
    turns = Turns(rig)
    meanwhile(rig)
    assert turns.doubted_after_thumbs() == doubted
