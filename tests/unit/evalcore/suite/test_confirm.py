"""Fresh samples decide what chance could have brought about: slices that tripped, and cases of safety that failed."""

from __future__ import annotations

from collections.abc import Sequence

from evalcore.suite.confirm import FRESH, Confirmation, confirmed, doubt
from evalcore.suite.gates import Judged, SuiteCode, judge
from evalcore.suite.pairing import paired
from schemas.verdicts import VerdictLevel
from tests.unit.evalcore.suite.suite_runs import FAILED, NOT_APPLICABLE, UNSCORED, Value, pair, run

CHAT = [f"c{number:02}" for number in range(30)]
SAFE = [f"s{number}" for number in range(3)]
SLICES = {name: ["chat"] for name in CHAT} | {name: ["safety"] for name in SAFE}
GOOD: dict[str, list[Value]] = {name: [1.0, 0.8, 0.9] for name in CHAT} | {name: [1.0, 1.0, 1.0] for name in SAFE}
FELL: dict[str, list[Value]] = GOOD | {name: [0.2, 0.5, 0.4] for name in CHAT[:15]}
LEAKED: dict[str, list[Value]] = GOOD | {"s1": [1.0, 0.0, 1.0]}


def samples(values: dict[str, float], **others: Sequence[Value]) -> dict[str, list[Value]]:
    """Fresh samples: the same value six times, and literal ones of others."""
    return {name: [value] * FRESH for name, value in values.items()} | {
        name: list(found) for name, found in others.items()
    }


def decided(
    candidate: dict[str, list[Value]],
    fresh_baseline: dict[str, list[Value]],
    fresh_candidate: dict[str, list[Value]],
    baseline: dict[str, list[Value]] = GOOD,
) -> tuple[Judged, tuple[Confirmation, ...]]:
    stored = run(baseline, SLICES)
    first = pair(stored, run(candidate, SLICES))
    plain = judge(first)
    anew = run(fresh_baseline, SLICES)
    fresh = paired(anew, run(fresh_candidate, SLICES), first.score, first.scale)
    return confirmed(plain, doubt(plain, first), fresh, paired(stored, anew, first.score, first.scale))


def codes(found: Judged) -> list[SuiteCode]:
    return [one.code for one in found.reasons]


def test_only_what_tripped_is_asked_anew() -> None:
    paired = pair(run(GOOD, SLICES), run(FELL | {"s1": [1.0, 0.0, 1.0]}, SLICES))
    found = doubt(judge(paired), paired)
    assert (list(found.slices), found.suspects) == (["chat"], ("s1",))
    assert found.cases == [*CHAT, "s1"]
    unchanged = pair(run(GOOD, SLICES), run(GOOD, SLICES))
    assert doubt(judge(unchanged), unchanged).cases == []


def test_a_slice_whose_fresh_samples_are_worse_as_well_blocks() -> None:
    worse = dict.fromkeys(CHAT, 0.9) | dict.fromkeys(CHAT[:15], 0.4)
    found, said = decided(FELL, samples(dict.fromkeys(CHAT, 0.9)), samples(worse))
    assert found.verdict is VerdictLevel.FAIL
    assert SuiteCode.SLICE_REGRESSED in codes(found)
    assert "worse in fresh samples alone" in next(one.message for one in found.reasons if one.slice == "chat")
    assert (said[0].stands, said[0].moved) == (True, None)


def test_a_slice_whose_fresh_samples_are_not_worse_does_not_block() -> None:
    same = samples(dict.fromkeys(CHAT, 0.9))
    found, said = decided(FELL, same, same)
    assert SuiteCode.SLICE_REGRESSED not in codes(found)
    assert (said[0].stands, said[0].slice) == (False, "chat")


def test_a_difference_in_fresh_samples_that_chance_makes_does_not_block() -> None:
    """15 cases up and 15 down, the latter a little further: worse, and at one-sided 5 % no proof."""
    apart = {name: 0.9 + (0.1 if place % 2 else -0.13) for place, name in enumerate(CHAT)}
    found, said = decided(FELL, samples(dict.fromkeys(CHAT, 0.9)), samples(apart))
    assert SuiteCode.SLICE_REGRESSED not in codes(found)
    assert said[0].fresh is not None
    assert said[0].fresh.delta is not None
    assert said[0].fresh.delta < 0


def test_the_headline_is_not_asked_again() -> None:
    same = samples(dict.fromkeys(CHAT, 0.9))
    found, _ = decided(FELL, same, same)
    assert codes(found) == [SuiteCode.HEADLINE_REGRESSED]


def test_a_baseline_that_fell_too_says_that_the_world_moved() -> None:
    low = dict.fromkeys(CHAT, 0.9) | dict.fromkeys(CHAT[:15], 0.4)
    found, said = decided(FELL, samples(low), samples(low))
    assert SuiteCode.WORLD_MOVED in codes(found)
    assert SuiteCode.SLICE_REGRESSED not in codes(found)
    assert said[0].moved is not None
    assert said[0].moved < -0.2


def test_a_candidate_that_is_worse_in_a_world_that_moved_blocks_all_the_same() -> None:
    low = dict.fromkeys(CHAT, 0.9) | dict.fromkeys(CHAT[:15], 0.5)
    lower = dict.fromkeys(CHAT, 0.9) | dict.fromkeys(CHAT[:15], 0.2)
    found, _ = decided(FELL, samples(low), samples(lower))
    assert found.verdict is VerdictLevel.FAIL
    assert {SuiteCode.SLICE_REGRESSED, SuiteCode.WORLD_MOVED} <= {*codes(found)}


def test_a_suspect_that_fails_twice_anew_blocks_and_one_that_fails_once_is_told() -> None:
    clean = [1.0] * FRESH
    for again, verdict, code in (
        ([0.0, 0.0, 1.0, 1.0, 1.0, 1.0], VerdictLevel.FAIL, SuiteCode.SAFETY_REGRESSED),
        ([0.0, 1.0, 1.0, 1.0, 1.0, 1.0], VerdictLevel.WARN, SuiteCode.SAFETY_SUSPECT),
        (clean, VerdictLevel.WARN, SuiteCode.SAFETY_SUSPECT),
    ):
        found, said = decided(LEAKED, samples({}, s1=clean), samples({}, s1=again))
        assert (found.verdict, codes(found)) == (verdict, [code])
        assert found.reasons[0].cases == ("s1",)
        assert said[0].failing == (0, again.count(0.0))


def test_a_suspect_blocks_only_if_the_baseline_fails_less_often() -> None:
    twice = [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    found, _ = decided(LEAKED, samples({}, s1=twice), samples({}, s1=twice))
    assert found.verdict is VerdictLevel.WARN
    found, _ = decided(LEAKED, samples({}, s1=twice), samples({}, s1=[0.0, *twice[:5]]))
    assert found.verdict is VerdictLevel.FAIL


def test_a_case_of_safety_that_failed_each_sample_blocks_however_well_it_is_answered_anew() -> None:
    """A candidate that leaks whenever it is asked, and sees that it is asked anew, is no chance."""
    clean = [1.0] * FRESH
    for first, verdict, code in (
        ([0.0, 0.0, 0.0], VerdictLevel.FAIL, SuiteCode.SAFETY_REGRESSED),
        ([0.0, 0.0, 0.0, 0.0], VerdictLevel.FAIL, SuiteCode.SAFETY_REGRESSED),
        ([0.0, 0.0, 1.0], VerdictLevel.WARN, SuiteCode.SAFETY_SUSPECT),
        ([0.0, 0.0], VerdictLevel.WARN, SuiteCode.SAFETY_SUSPECT),
    ):
        found, said = decided(GOOD | {"s1": first}, samples({}, s1=clean), samples({}, s1=clean))
        assert (found.verdict, codes(found)) == (verdict, [code]), first
        assert said[0].stands is (verdict is VerdictLevel.FAIL)
    found, said = decided(GOOD | {"s1": [0.0] * 3}, samples({}, s1=clean), samples({}, s1=clean))
    assert "before it failed all of 3" in said[0].message
    twice = samples({}, s1=[0.0, 0.0, *clean[2:]])
    found, _ = decided(GOOD | {"s1": [0.0] * 3}, twice, samples({}, s1=clean))
    assert codes(found) == [SuiteCode.SAFETY_SUSPECT]


def test_what_has_no_fresh_samples_stands() -> None:
    """Promise 4: a baseline that can't be asked again frees nobody."""
    half = samples(dict.fromkeys(CHAT[:20], 0.9))
    found, said = decided(FELL, half, half)
    assert (found.verdict, said[0].stands) == (VerdictLevel.FAIL, True)
    for few in ([1.0] * (FRESH - 1), [FAILED] * FRESH, [UNSCORED] * FRESH, [NOT_APPLICABLE] * FRESH):
        again, told = decided(LEAKED, samples({}, s1=[1.0] * FRESH), samples({}, s1=few))
        assert (again.verdict, told[0].stands) == (VerdictLevel.FAIL, True), few


def test_missing_fresh_scores_are_at_their_worst() -> None:
    lacking = samples(dict.fromkeys(CHAT, 0.9), **dict.fromkeys(CHAT[:15], [UNSCORED] * FRESH))
    found, said = decided(FELL, samples(dict.fromkeys(CHAT, 0.9)), lacking)
    assert found.verdict is VerdictLevel.FAIL
    assert "lack scores" in said[0].message
