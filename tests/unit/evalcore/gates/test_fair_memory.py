"""The memory of verdicts is shared out: whoever floods it makes it forget of its own alone."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from evalcore.gates.history import Asked, FairMemory, digest, shares


def of(agent: str, experiment: str) -> dict[str, str]:
    return {"agent_id": agent, "vertical": "v", "experiment_id": experiment}


def test_a_flood_of_one_agent_displaces_nothing_of_another() -> None:
    memory = FairMemory[str](100)
    for number in range(30):
        memory.put(f"quiet {number}", "kept", of("quiet", "e"))
    for number in range(20_001):
        memory.put(f"flood {number}", "flood", of("loud", f"e-{number}"))
    assert all(memory.get(f"quiet {number}") for number in range(30))
    assert all(memory.get(f"flood {number}") for number in range(20_001 - 50, 20_001)), "the last of its own"


def test_a_flood_of_one_experiment_displaces_nothing_of_the_same_agents_others() -> None:
    memory = FairMemory[str](100)
    for number in range(30):
        memory.put(f"quiet {number}", "kept", of("agent", "e"))
    for number in range(20_001):
        memory.put(f"flood {number}", "flood", of("agent", "loud"))
    assert all(memory.get(f"quiet {number}") for number in range(30))


def test_what_is_forgotten_is_told_once_and_is_the_oldest_of_its_asker() -> None:
    memory = FairMemory[int](40)
    forgotten = list(chain.from_iterable(memory.put(n, n, of("a", f"e{n % 2}")) for n in range(1_000)))
    left = [n for n in range(1_000) if memory.get(n) is not None]
    assert forgotten == list(range(1_000 - len(left)))
    assert left == list(range(1_000 - len(left), 1_000))
    assert 40 <= len(left) <= 42


@given(st.dictionaries(st.integers(), st.integers(0, 50), max_size=12), st.integers(0, 200))
def test_shares_fill_the_room_and_nobody_gets_less_so_that_another_gets_more(wanted: dict[int, int], room: int) -> None:
    given_ = shares(wanted, room)
    assert sum(given_.values()) == min(room, sum(wanted.values()))
    assert all(given_[name] <= most for name, most in wanted.items())
    short = [given_[name] for name, most in wanted.items() if given_[name] < most]
    assert all(given_[name] <= least + 1 for name in wanted for least in short)


def test_a_digest_takes_any_text() -> None:
    assert Asked.of("body", "place") == Asked.of("body", "place") != Asked.of("body", "another place")
    assert len(digest("\ud800", 12)) == 12
