"""Shards: parents before children, whatever tree a stream has grown."""

from __future__ import annotations

import random

import pytest

from streams.dynamodb.shards import (
    HORIZON_MS,
    Place,
    Shard,
    decode_place,
    encode_place,
    readable,
    unlisted,
)


def names(shards: list[Shard]) -> list[str]:
    return [shard.shard_id for shard in shards]


def test_only_roots_may_be_read_at_first() -> None:
    tree = [Shard("a", None, "1", True), Shard("b", "a", "5"), Shard("c", "a", "6"), Shard("d", "gone", "3")]
    assert names(readable(tree, set())) == ["a", "d"]


def test_children_follow_once_their_parent_is_done() -> None:
    tree = [Shard("a", None, "1", True), Shard("b", "a", "5", True), Shard("c", "b", "9")]
    assert names(readable(tree, {"a"})) == ["b"]
    assert names(readable(tree, {"a", "b"})) == ["c"]


def test_the_oldest_comes_first_by_number_not_by_text() -> None:
    assert names(readable([Shard("b", None, "10"), Shard("a", None, "9")], set())) == ["a", "b"]


@pytest.mark.parametrize("seed", range(20))
def test_any_tree_is_read_whole_and_in_order(seed: int) -> None:
    """Shards split into any number of children; each is readable exactly after its parent."""
    dice = random.Random(seed)
    tree = [Shard("s0", None, "0", True)]
    for number in range(1, 40):
        parent = dice.choice([None, *names(tree)[-6:]])
        tree.append(Shard(f"s{number}", parent, str(number), dice.random() < 0.8))
    parents = {shard.shard_id: shard.parent for shard in tree}
    dice.shuffle(tree)
    done: list[str] = []
    while ready := readable(tree, set(done)):
        taken = dice.choice(ready).shard_id
        assert parents[taken] is None or parents[taken] in done
        done.append(taken)
    assert sorted(done) == sorted(parents)


def test_an_unread_shard_that_is_no_longer_listed_is_lost_and_a_read_one_is_forgotten() -> None:
    places = {"read": Place("9", 1, end=True), "unread": Place("4", 1), "listed": Place("2", 1)}
    assert unlisted(["listed"], places, read=False) == ["unread"]
    assert unlisted(["listed"], places, read=True) == ["read"]


def test_a_place_outlives_the_stream_after_a_day_and_an_unknown_one_never() -> None:
    assert Place("1", 1_000).outlived(1_001 + HORIZON_MS)
    assert not Place("1", 1_000).outlived(1_000 + HORIZON_MS)
    assert not Place().outlived(HORIZON_MS * 9)


def test_a_place_reads_back_as_it_was_written() -> None:
    for place in (Place(), Place("12", 5, tip=True), Place("1", 2, end=True)):
        assert decode_place(encode_place(place)) == place
