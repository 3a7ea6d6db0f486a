"""The smoke set is the same on each commit, has cases of every slice, and hardly changes with the cases."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalcore.suite.draw import smoke_set

TAGS = st.dictionaries(
    st.integers(0, 400).map(lambda number: f"case-{number}"),
    st.sets(st.sampled_from(["safety", "refunds", "search", "greetings"]), max_size=3),
    max_size=80,
)


@given(
    TAGS,
    st.integers(0, 401).map(lambda number: f"new-{number}"),
    st.sets(st.sampled_from(["safety", "search", "brand-new"])),
)
def test_one_case_more_moves_at_most_one_pick(tags: dict[str, set[str]], name: str, slices: set[str]) -> None:
    before = set(smoke_set(tags, ["safety"], 20))
    after = set(smoke_set({**tags, name: slices}, ["safety"], 20))
    assert len(before - after) <= 1
    assert len(after - before) <= 1


@given(TAGS, st.integers(0, 100))
def test_it_has_as_many_as_asked_for_or_all(tags: dict[str, set[str]], most: int) -> None:
    drawn = smoke_set(tags, [], most)
    assert len(drawn) == len(set(drawn)) == min(most, len(tags))


@given(TAGS)
def test_the_order_of_the_cases_does_not_matter(tags: dict[str, set[str]]) -> None:
    assert smoke_set(dict(reversed(tags.items())), ["safety"], 20) == smoke_set(tags, ["safety"], 20)


def test_slices_take_turns_so_that_a_small_one_is_there() -> None:
    tags = {f"search-{number}": {"search"} for number in range(1_000)} | {"only": {"rare"}, "plain": set()}
    drawn = smoke_set(tags, [], 50)
    assert {"only", "plain"} <= set(drawn)


def test_safety_comes_first() -> None:
    tags = {f"{name}-{number}": {name} for name in ("a", "b", "safety") for number in range(9)}
    assert [name.partition("-")[0] for name in smoke_set(tags, ["safety"], 1)] == ["safety"] * 9, "all of safety"
