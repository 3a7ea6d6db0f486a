"""Whatever a producer compressed is inflated as far as the bound and no further."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress

import pytest
from aiokafka import codec
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from cramjam import DecompressionError
from hypothesis import given
from hypothesis import strategies as st

from streams.kafka.inflation import (
    CODECS,
    DRAIN_BYTES,
    FACTOR,
    FETCH_BYTES,
    Bound,
    NotNow,
    TooLarge,
    drain,
    inflate,
    limit_inflation,
    unusable_codecs,
)

NUMBERS = {name: number for number, (name, _) in CODECS.items()}
LIMIT = 1_000_000


@pytest.fixture(autouse=True)
def small_bound(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Bound, "limit", LIMIT)
    drain.spent = 0
    yield
    drain.spent = 0


def packed(name: str, data: bytes) -> bytes:
    return bytes(getattr(codec, f"{name}_encode")(data))


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("size", [0, 1, 70_000, LIMIT])
def test_what_is_within_the_bound_comes_back_as_it_was(name: str, size: int) -> None:
    data = (b"all that a user said " * (size // 21 + 1))[:size]
    assert bytes(inflate(NUMBERS[name], packed(name, data))) == data


def test_snappy_without_blocks_comes_back_too() -> None:
    assert bytes(inflate(2, codec.snappy_encode(b"abc" * 999, xerial_compatible=False))) == b"abc" * 999


@pytest.mark.parametrize("name", NUMBERS)
def test_one_byte_more_than_the_bound_is_too_large(name: str) -> None:
    with pytest.raises(TooLarge):
        inflate(NUMBERS[name], packed(name, bytes(LIMIT + 1)))


@pytest.mark.parametrize("blocks", [True, False])
def test_snappy_is_not_inflated_to_find_that_it_is_too_large(blocks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = codec.snappy_encode(bytes(LIMIT + 1), xerial_compatible=blocks)
    monkeypatch.setattr(codec.cramjam.snappy, "decompress_raw", None)
    with pytest.raises(TooLarge):
        inflate(2, data)


def test_the_bound_grows_with_the_largest_record_and_never_below_a_fetch() -> None:
    limit_inflation(1_000)
    assert Bound.limit == FACTOR * FETCH_BYTES
    limit_inflation(FETCH_BYTES * 2)
    assert Bound.limit == FACTOR * FETCH_BYTES * 2


def test_a_drain_that_has_inflated_enough_leaves_the_next_batch_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bound, "limit", DRAIN_BYTES)
    data = packed("zstd", bytes(DRAIN_BYTES))
    assert len(inflate(4, data)) == DRAIN_BYTES
    with pytest.raises(NotNow):
        inflate(4, data)
    drain.spent = 0
    assert len(inflate(4, data)) == DRAIN_BYTES


@pytest.mark.parametrize("number", [5, 6, 7])
def test_a_codec_that_kafka_does_not_have_is_named(number: int) -> None:
    with pytest.raises(UnsupportedCodecError, match=str(number)):
        inflate(number, b"")


def test_gzip_that_stops_early_or_goes_on_behind_its_end_is_broken() -> None:
    whole = packed("gzip", b"abc" * 100)
    for broken in (whole[:-9], whole + whole):
        with pytest.raises(Exception, match="end"):
            inflate(1, broken)


def test_a_snappy_block_that_says_it_ends_before_it_begins_is_broken() -> None:
    """A reader that goes back by that length would never come to an end."""
    head = packed("snappy", b"abc")[:16]
    with pytest.raises(Exception, match="length"):
        inflate(2, head + (-4).to_bytes(4, "big", signed=True) + b"rest")


@given(
    name=st.sampled_from(sorted(NUMBERS)),
    data=st.binary(max_size=200),
    at=st.integers(0, 300),
    changed=st.binary(max_size=8),
)
def test_changed_bytes_give_bytes_within_the_bound_or_an_error(name: str, data: bytes, at: int, changed: bytes) -> None:
    drain.spent = 0
    raw = packed(name, data * 50)
    at %= len(raw)
    with suppress(CorruptRecordException, DecompressionError, zlib.error, TooLarge):
        assert len(inflate(NUMBERS[name], raw[:at] + changed + raw[at + len(changed) :])) <= LIMIT


def test_all_of_kafkas_codecs_work_here() -> None:
    assert set(NUMBERS) == {"gzip", "snappy", "lz4", "zstd"}
    assert unusable_codecs() == {}


def test_a_codec_without_its_library_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "cramjam", None)
    found = unusable_codecs()
    assert set(found) == {"snappy", "lz4", "zstd"}
    assert all("not available" in why for why in found.values())


def test_a_codec_that_can_not_be_held_to_a_bound_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CODECS, 1, ("gzip", lambda data, limit: zlib.decompress(data, 31)))
    assert unusable_codecs() == {"gzip": "it can't be held to a bound"}
