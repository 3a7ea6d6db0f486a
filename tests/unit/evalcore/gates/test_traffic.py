"""A sample that is not the traffic fails its gate, and an honest one hardly ever does (contracts §3)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from evalcore.gates.composition import CHANCE, Drawn, Traffic, facts_of, share_chance
from evalcore.gates.decision import Evidence, decide
from schemas.judges import Milestone
from schemas.manifests import GateDefaults
from schemas.verdicts import Code, VerdictLevel

GATES = GateDefaults()
NONE = {"rated": 0, "rerolled": 0}


def account(traffic: Traffic | None = None, made: Drawn | None = None) -> tuple[str, ...]:
    traffic = traffic or Traffic(100, 100, signals=NONE)
    return facts_of(traffic, made or Drawn(100, 100, 100, NONE, NONE), GATES).incomplete


def test_an_honest_account_says_nothing() -> None:
    assert account() == ()
    left = {"record_not_come": 3, "dead_lettered": 1, "not_ended": 1, "beyond_pool": 900}
    assert account(Traffic(1_000, 95, left, signals=NONE), Drawn(95, 95, 995, NONE, NONE)) == ()
    assert account(Traffic(signals=NONE), Drawn(0, 0, 0, NONE, NONE)) == (), "no traffic at all is a matter of its size"


@pytest.mark.parametrize(
    ("traffic", "said"),
    [
        (Traffic(100, 96, difference=4, signals=NONE), "the sum does not add up"),
        (Traffic(100, 96, signals=NONE), "the sum does not add up"),
        (Traffic(100, 94, {"dead_lettered": 2, "not_ended": 4}, signals=NONE), "6 of 100 eligible turns are left out"),
        (Traffic(100, 100, signals=NONE, records=100, unreadable=2), "2 of the window's 100 records of traces"),
    ],
)
def test_what_is_missing_is_said_and_fails_the_gate(traffic: Traffic, said: str) -> None:
    (why,) = account(traffic)
    assert said in why
    made = decide(Milestone.PRE_RAMP, {}, Evidence(100, 100, incomplete=(why,)))
    assert made.verdict is VerdictLevel.FAIL
    assert made.reasons[0].code is Code.SAMPLE_INCOMPLETE


def test_a_sample_whose_records_have_left_their_topic_is_not_the_traffic() -> None:
    (why,) = account(Traffic(100, 100, signals=NONE), Drawn(100, 94, 100, NONE, NONE))
    assert "6 of 100 drawn turns have left their topic" in why
    assert account(Traffic(100, 100, signals=NONE), Drawn(100, 95, 100, NONE, NONE)) == ()


def test_the_bounds_are_the_manifests_and_not_passed_by_reaching_them() -> None:
    out = Traffic(100, 95, {"not_ended": 5}, signals=NONE, records=100, unreadable=1)
    assert account(out, Drawn(95, 95, 95, NONE, NONE)) == ()
    loose = GateDefaults(left_out_share=0.9, unreadable_share=0.5)
    worse = Traffic(100, 20, {"record_not_come": 80}, signals=NONE, records=100, unreadable=40)
    assert facts_of(worse, Drawn(20, 20, 20, NONE, NONE), loose).incomplete == ()


@given(population=st.integers(1, 400), data=st.data())
def test_the_chance_of_a_share_is_the_hypergeometric_one(population: int, data: st.DataObject) -> None:
    carry = data.draw(st.integers(0, population))
    read = data.draw(st.integers(1, population))
    sampled = data.draw(st.integers(max(0, read - (population - carry)), min(read, carry)))
    masses = hypergeom(population, carry, read).pmf(range(read + 1))
    expected = sum(one for one in masses if one <= masses[sampled] * (1 + 1e-7))
    assert share_chance(population, carry, read, sampled) == pytest.approx(min(expected, 1.0), abs=1e-9)


def test_what_can_not_be_has_no_chance() -> None:
    assert share_chance(100, 10, 100, 9) == 0.0, "all were drawn, and one of the rated is not there"
    assert share_chance(100, 0, 50, 1) == 0.0


def test_records_that_are_gone_are_given_the_likeliest_share() -> None:
    assert share_chance(100, 10, 90, 9, gone=10) == pytest.approx(1.0)
    assert share_chance(100, 10, 90, 0, gone=10) == pytest.approx(1.0), "all ten may be among those that are gone"
    assert share_chance(100, 30, 90, 9, gone=10) < CHANCE


@pytest.mark.parametrize(("population", "carry", "size"), [(180, 60, 120), (5_000, 400, 200), (600, 30, 600)])
def test_of_ten_thousand_honest_draws_at_most_twenty_fail(population: int, carry: int, size: int) -> None:
    dice, failed = random.Random(31), 0
    turns = [number < carry for number in range(population)]
    for _ in range(10_000):
        sampled = sum(dice.sample(turns, size))
        failed += share_chance(population, carry, size, sampled) < CHANCE
    assert failed <= 10, "of one share; a gate looks at two"


def test_a_draw_that_prefers_unrated_turns_fails_by_its_share() -> None:
    """The sum adds up: each turn is in the pool, and the draw takes the rated ones last."""
    traffic = Traffic(600, 600, signals={"rated": 100, "rerolled": 0})
    made = Drawn(200, 200, 600, {"rated": 100, "rerolled": 0}, {"rated": 8, "rerolled": 0})
    (why,) = account(traffic, made)
    assert "8 of the sample's 200 turns are rated, and 100 of the 600" in why
