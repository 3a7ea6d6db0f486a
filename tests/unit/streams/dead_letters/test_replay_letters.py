"""A dead letter always fits its topic, tells its record over all attempts, and reads back what was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.dead_letter_answers import StoredDeadLetter, parse_dead_letter
from schemas.dead_letters import HEADER_ROOM, DeadLetter, attempts_of, replay_id_of
from schemas.outcomes import EXPLANATIONS, Cause, markdown
from streams.dead_letters.listing import iso, printable
from streams.dead_letters.reader import DeadLetterFilter, Duplicates
from tests.root import ROOT
from tests.unit.agents.builders import NOW, Rec

HEADERS = st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=50)), max_size=5)
LIMIT = 1_000_000


def sent(record: Rec, cause: Cause = Cause.MALFORMED, offset: int = 0, detail: str = "why") -> Rec:
    """The dead letter of a record, as it lies in its topic."""
    key, value, headers = DeadLetter(record, cause, detail, "thumbs.decode", NOW).encode(LIMIT)
    return Rec(value, "rampgate.dead-letters", 0, offset, NOW, key, tuple(headers))


def letter(record: Rec, **more: object) -> StoredDeadLetter:
    return parse_dead_letter(sent(record, **more))


@given(st.none() | st.binary(max_size=200), st.none() | st.binary(max_size=200), HEADERS)
def test_what_goes_in_comes_out(value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes]]) -> None:
    record = Rec(value, offset=7, partition=3, key=key, headers=tuple(headers))
    back = letter(record)
    assert (back.record.value, back.record.key) == (value, key)
    assert back.original_headers == [pair for pair in headers if not pair[0].startswith("rampgate.")]
    assert (back.came_from, back.timestamp, back.failed_at) == ("rampgate.thumbs/3/7", NOW, NOW)
    assert back.cut == ()


@given(HEADERS, st.none() | st.binary(max_size=20))
def test_anything_in_the_topic_can_be_read(headers: list[tuple[str, bytes]], value: bytes | None) -> None:
    prefixed = [("rampgate." + name, content) for name, content in headers]
    assert parse_dead_letter(Rec(value, headers=tuple(headers + prefixed))).identity


@pytest.mark.parametrize("content", [None, b"", b"-1", b"x", b"9" * 5_000, "٣".encode()])
def test_a_bad_attempts_header_counts_as_none(content: bytes | None) -> None:
    assert attempts_of([("rampgate.attempts", content)]) == 0
    assert letter(Rec(b"", headers=(("rampgate.attempts", content),))).attempts == 1


@pytest.mark.parametrize("content", [None, b"", b"x" * 36, b"\xff" * 36])
def test_a_bad_replay_id_is_none(content: bytes | None) -> None:
    assert replay_id_of([("rampgate.replay-id", content)]) is None


def test_a_record_keeps_its_name_over_its_attempts() -> None:
    first = letter(Rec(b"{bad", offset=5, headers=(("h", b"1"),)))
    again = letter(Rec(b"{bad", offset=99, headers=tuple(first.replay_headers)))
    assert (again.replay_id, again.attempts) == (first.replay_id, 2)
    assert again.original_headers == [("h", b"1")]
    assert again.identity != first.identity
    other = letter(Rec(b"{bad", offset=6))
    assert other.replay_id != first.replay_id


def test_doubled_letters_are_told_from_records_that_only_share_a_name() -> None:
    record = Rec(b"{bad", offset=5)
    assert letter(record, offset=1).identity == letter(record, offset=2).identity
    forged = (("rampgate.replay-id", letter(record).replay_id.encode()),)
    duplicates = Duplicates(remembered=10)
    assert not duplicates.seen(letter(Rec(b"one", headers=forged)))
    assert not duplicates.seen(letter(Rec(b"two", headers=forged)))
    assert duplicates.seen(letter(Rec(b"one", headers=forged)))


@given(st.integers(0, 2_500_000), st.integers(0, 2_500_000), st.integers(0, 2_500_000))
def test_every_letter_fits_and_says_what_it_lost(value: int, key: int, header: int) -> None:
    record = Rec(b"v" * value, key=b"k" * key, headers=(("h", b"h" * header),))
    out = sent(record, detail="d" * 900)
    size = len(out.value or b"") + len(out.key or b"") + sum(len(n) + len(c or b"") for n, c in out.headers)
    assert size < LIMIT + HEADER_ROOM + 4_096 < 1_048_000
    back = parse_dead_letter(out)
    whole = (out.value, out.key, back.original_headers) == (record.value, record.key, [*record.headers])
    assert whole == (back.cut == ())
    assert whole == ("can't be replayed" not in back.detail)
    if value + key + header < LIMIT:
        assert whole


def test_each_filter_narrows_and_a_key_is_also_sought_in_the_value() -> None:
    one = letter(Rec(b'{"response_id": "r-1"}', key=b"item"), cause=Cause.OPIK_REJECTED)
    assert DeadLetterFilter().matches(one)
    assert DeadLetterFilter(key="item").matches(one)
    assert DeadLetterFilter(key="r-1").matches(one)
    assert not DeadLetterFilter(key="r").matches(one)
    assert DeadLetterFilter(causes=frozenset([Cause.OPIK_REJECTED]), topics=frozenset(["rampgate.thumbs"])).matches(one)
    assert not DeadLetterFilter(causes=frozenset([Cause.MALFORMED])).matches(one)
    assert DeadLetterFilter(since=NOW, until=NOW).matches(one)
    assert not DeadLetterFilter(since=NOW + 1).matches(one)
    assert not DeadLetterFilter(until=NOW - 1).matches(one)
    assert DeadLetterFilter(came_from=one.came_from, replay_id=one.replay_id, stage="thumbs.decode").matches(one)
    assert not DeadLetterFilter(stage="settle").matches(one)


@given(st.binary(max_size=50))
def test_nothing_unprintable_is_printed(content: bytes) -> None:
    assert printable(content).isprintable()


@given(st.integers(-(10**18), 10**18))
def test_any_number_may_stand_where_a_time_should(ms: int) -> None:
    iso(ms)


def test_every_cause_is_explained_and_the_documentation_says_the_same() -> None:
    assert set(EXPLANATIONS) == set(Cause)
    page = ROOT / "docs" / "dead-letters.md"
    assert markdown() in page.read_text()
