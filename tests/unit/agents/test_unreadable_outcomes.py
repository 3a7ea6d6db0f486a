"""What no one can read ends as any record does: in one letter that says where it lies, counted, and stepped past."""

from __future__ import annotations

import pytest

from agents.join.batches import Batch, FetchedBatch
from agents.live.judging import thumbs, traces
from schemas.dead_letter_answers import DeadLetterState, StoredDeadLetter, parse_dead_letter
from schemas.dead_letters import HEAD_BYTES, DeadLetter, UnreadableRecord
from schemas.outcomes import Cause, Kind
from schemas.topics import Topics
from streams.dead_letters.states import refusal
from tests.unit.agents.builders import NOW, Rec, encode, reroll, thumb, trace
from tests.unit.agents.join.world import AGENTS, World
from tests.unit.streams.gates.gate_world import TOPIC, Worker, quicken, request
from tests.waiting import come

LIMIT = 1_000_000
GOOD = {Kind.THUMBS: thumb("r"), Kind.REROLL: reroll("r"), Kind.TRACE: trace("r")}


def alone(topic: str, offset: int, raw: bytes | None = b"{}") -> UnreadableRecord:
    """A record whose headers are at fault."""
    headers = (("fine", b"1"), ("\\xff", b"2"))
    return UnreadableRecord(topic, 0, offset, NOW, Cause.UNREADABLE, "why", raw, key=b"key", headers=headers)


def whole(
    topic: str, first: int, last: int, raw: bytes = b"batch", cause: Cause = Cause.UNREADABLE
) -> UnreadableRecord:
    return UnreadableRecord(topic, 0, last, NOW, cause, "why", raw, first)


def letter(record: UnreadableRecord) -> StoredDeadLetter:
    key, value, headers = DeadLetter(record, record.cause, record.reason, "thumbs.decode", NOW).encode(LIMIT)
    return parse_dead_letter(Rec(value, "rampgate.dead-letters", 0, 0, NOW, key, tuple(headers)))


@pytest.mark.parametrize("kind", GOOD)
async def test_each_agent_dead_letters_it_counts_each_of_its_offsets_and_goes_on(kind: Kind) -> None:
    world = World()
    topic = world.topics.of(kind)
    good = encode(GOOD[kind])
    records = [
        Rec(good, topic, 0, 0),
        alone(topic, 1, good),
        whole(topic, 2, 6),
        whole(topic, 7, 7, cause=Cause.TOO_LARGE),
        Rec(b"no json", topic, 0, 8),
    ]
    batch = Batch(topic, 0, 0, records)
    world.start(batch)
    report = await world.handle(batch, AGENTS[kind])
    assert [(one.cause, one.record.offset, one.detail) for one in world.letters.letters[:3]] == [
        (Cause.UNREADABLE, 1, "why"),
        (Cause.UNREADABLE, 6, "why"),
        (Cause.TOO_LARGE, 7, "why"),
    ]
    found = world.conservation(kind)
    assert found.pop("unreadable", 0) == (8 if kind == Kind.TRACE else 0), "no one can say of which version they are"
    assert found.pop("consumed") == sum(found.values()) == 9, "an event in unreadable bytes is not taken for an event"
    assert (found["dead_lettered:unreadable"], found["dead_lettered:too_large"]) == (6, 1)
    assert report.counts[kind, "dead_lettered:unreadable"] == 6
    assert world.store.values[batch.watermark_key][0] == b"9"


async def test_live_judging_passes_it_by() -> None:
    world = World()
    for codec in (traces, thumbs):
        decoded = codec.decode([alone("t", 1, encode(trace("r"))), whole("t", 2, 6)], NOW, world.policy)
        assert (decoded.items, len(decoded.bad)) == ([], 2)


async def test_a_ramp_step_that_nobody_can_read_is_dead_lettered_and_the_next_one_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quicken(monkeypatch)
    worker = Worker()
    records = [alone(TOPIC, 0, request("hidden")), whole(TOPIC, 1, 4), Rec(request("seen"), TOPIC, 0, 5)]
    batch = FetchedBatch(TOPIC, 0, 0, records, generation=worker.consumer.generation)
    await worker.requests.submit(batch, lambda: worker.acked.append(0))
    await come(lambda: worker.acked)
    assert worker.verdicts == ["seen"]
    assert [one.cause for one in worker.letters.letters] == [Cause.UNREADABLE] * 2
    assert worker.state.conservation() == {"consumed": 6, "done": 1, "dead_lettered:unreadable": 5}


def test_the_letter_of_a_record_has_its_bytes_and_can_be_replayed() -> None:
    found = letter(alone("rampgate.thumbs", 7, b"as it came"))
    assert (found.record.value, found.record.key, found.offset) == (b"as it came", b"key", 7)
    assert found.original_headers == [("fine", b"1"), ("\\xff", b"2")]
    assert (found.cause, found.cut, refusal(found, Topics())) == (Cause.UNREADABLE, (), None)


def test_the_letter_of_a_batch_names_its_first_and_last_offset_and_can_not_be_replayed() -> None:
    found = letter(whole("rampgate.thumbs", 7, 11))
    headers = dict(found.record.headers)
    assert (headers["rampgate.first-offset"], headers["rampgate.offset"]) == (b"7", b"11")
    assert (found.record.value, found.record.key) == (b"batch", None)
    assert "from offset 7 on" in found.detail
    status = refusal(found, Topics())
    assert status is not None
    assert (status.state, "batch" in status.why) == (DeadLetterState.NOT_REPLAYABLE, True)


def test_a_batch_too_large_for_a_letter_is_cut_to_its_head() -> None:
    found = letter(whole("rampgate.thumbs", 7, 11, b"x" * (LIMIT + 1)))
    assert len(found.record.value or b"") == HEAD_BYTES
    assert dict(found.record.headers)["rampgate.original-length"] == b"%d" % (LIMIT + 1)
