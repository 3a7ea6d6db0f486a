"""What Kafka itself loses: retention that overtakes a worker, and topics that are made again (promises 1 and 3)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import orjson
from confluent_kafka import TopicPartition

from tests.fault.held import PARTITIONS
from tests.fault.rig import Rig
from tests.fault.turns import Message
from tests.fault.worker_process import WorkerProcess
from tests.stream.plain_events import thumb

Make = Callable[..., Rig]


def thumbs(first: int, many: int) -> list[Message]:
    now = datetime.now(UTC)
    names = [f"turn-{number}" for number in range(first, first + many)]
    return [Message("thumbs", name.encode(), orjson.dumps(thumb(name, now))) for name in names]


def drop(rig: Rig, before: dict[tuple[str, int], int]) -> None:
    """Have Kafka drop the records before these offsets, as retention does."""
    wanted = [TopicPartition(rig.prefix + topic, partition, offset) for (topic, partition), offset in before.items()]
    for answer in rig._admin.delete_records(wanted, request_timeout=30).values():
        answer.result(30)


def outrun(rig: Rig, many: int) -> WorkerProcess:
    """A worker that consumed 40 thumbs and goes on after a pause in which Kafka took and dropped as many more as told.

    They come in batches: a fetch that waits at the broker is answered with the first of them.
    """
    worker = rig.worker()
    rig.send(thumbs(0, 40))
    rig.wait("the first thumbs consumed", rig.drained)
    worker.pause()
    for first in range(40, 40 + many, 100):
        rig.send(thumbs(first, 100))
    drop(rig, rig.ends("thumbs"))
    worker.resume()
    return worker


def make_again(rig: Rig) -> None:
    """Delete the topic of thumbs and make it again, as fast as Kafka does it."""
    topic = rig.prefix + "thumbs"
    for answer in rig._admin.delete_topics([topic], operation_timeout=30, request_timeout=30).values():
        answer.result(30)

    def made() -> bool:
        rig.kafka.create_topics([topic], PARTITIONS)
        return sum(rig.ends("thumbs").values()) == 0

    rig.wait("the topic made again", made)


def ended(rig: Rig) -> int:
    """Thumbs that ended in one of the five states."""
    fields = rig.conservation().get("thumbs", {})
    return sum(n for name, n in fields.items() if name not in ("consumed", "gap", "gaps"))


def test_retention_that_overtakes_a_stopped_worker_is_a_counted_gap(make_rig: Make) -> None:
    rig = make_rig()
    worker = rig.worker()
    rig.send(thumbs(0, 300))
    rig.wait("the first thumbs consumed", rig.drained)
    assert worker.terminate() == 0
    settled = rig.ends("thumbs")
    rig.send(thumbs(300, 400))
    ends = rig.ends("thumbs")
    keep = {place: end - 5 for place, end in ends.items()}
    drop(rig, keep)
    lost = sum(keep[place] - settled[place] for place in ends)
    assert lost > 300
    rig.worker()
    rig.wait("the rest consumed", rig.drained)
    rig.wait("the rest counted", lambda: ended(rig) == 700 - lost)
    fields = rig.conservation()["thumbs"]
    assert (fields["gap"], fields["gaps"]) == (lost, PARTITIONS)
    assert fields["consumed"] == 700, "what was skipped is in the balance"
    assert rig.workers[-1].log().count('"kafka_gap"') == PARTITIONS


def test_retention_that_overtakes_a_running_worker_is_a_counted_gap(make_rig: Make) -> None:
    """The worker is held up for a moment; what came meanwhile is gone when it goes on."""
    rig = make_rig(session_timeout_seconds=20)
    worker = outrun(rig, 400)
    rig.send(thumbs(440, 60))
    rig.wait("the rest consumed", rig.drained)
    rig.wait("all of 500 accounted for", lambda: rig.conservation()["thumbs"]["consumed"] == 500)
    fields = rig.conservation()["thumbs"]
    assert fields["gap"] > 100
    assert ended(rig) + fields["gap"] == 500
    assert worker.running


def test_a_partition_that_retention_emptied_is_left_behind_though_nothing_new_comes(make_rig: Make) -> None:
    """Else the worker stands before a hole, seems to make no progress, and is killed by its probe."""
    rig = make_rig(session_timeout_seconds=20)
    outrun(rig, 200)
    rig.wait("all of 240 accounted for", lambda: rig.conservation()["thumbs"]["consumed"] == 240)
    rig.wait("the ends committed", rig.drained)


def heard(rig: Rig) -> set[str]:
    """Turns whose thumb is in the state."""
    return {key.decode().rpartition(":")[2] for key in rig.state.scan_iter(f"{rig.prefix}t2:*", count=1_000)}


def names(first: int, many: int) -> set[str]:
    return {f"turn-{number}" for number in range(first, first + many)}


def test_a_topic_made_again_while_no_worker_runs_is_read_from_its_start(make_rig: Make) -> None:
    """It has grown past the old watermarks, so that no offset alone tells."""
    rig = make_rig(missing_trace_seconds=600)
    worker = rig.worker()
    rig.send(thumbs(0, 300))
    rig.wait("the first thumbs consumed", rig.drained)
    assert worker.terminate() == 0
    make_again(rig)
    rig.send(thumbs(300, 600))
    rig.worker()
    rig.wait("all thumbs of the new topic heard", lambda: heard(rig) == names(0, 900))
    rig.wait("the new topic consumed", rig.drained)
    fields = rig.conservation()["thumbs"]
    assert (fields["gaps"], fields["gap"]) == (PARTITIONS, 0)
    assert fields["consumed"] == ended(rig) == 900


def test_a_topic_made_again_while_a_worker_runs_is_read_from_its_start(make_rig: Make) -> None:
    rig = make_rig(missing_trace_seconds=600)
    worker = rig.worker()
    rig.send(thumbs(0, 300))
    rig.wait("the first thumbs consumed", rig.drained)
    make_again(rig)
    rig.send(thumbs(300, 600))
    rig.wait("all thumbs of the new topic heard", lambda: heard(rig) == names(0, 900), 120)
    rig.wait("the new topic consumed", rig.drained)
    assert rig.conservation()["thumbs"]["gaps"] >= PARTITIONS
    assert worker.running
