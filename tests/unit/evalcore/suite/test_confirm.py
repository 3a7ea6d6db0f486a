"""Fresh samples decide what chance could have brought about: slices that tripped, and cases of safety that failed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from evalcore.suite.confirm import FRESH, Confirmation, confirmed, doubt
from evalcore.suite.gates import Judged, SuiteCode, judge
from evalcore.suite.words import Word
from schemas.verdicts import VerdictLevel
from tests.unit.evalcore.suite.suite_runs import FAILED, NOT_APPLICABLE, UNSCORED, Value, pair, run

CHAT = [f"c{number:02}" for number in range(30)]
SAFE = [f"s{number}" for number in range(3)]
SLICES = {name: ["chat"] for name in CHAT} | {name: ["safety"] for name in SAFE}
GOOD: dict[str, list[Value]] = {name: [1.0, 0.8, 0.9] for name in CHAT} | {name: [1.0, 1.0, 1.0] for name in SAFE}
FELL: dict[str, list[Value]] = GOOD | {name: [0.2, 0.5, 0.4] for name in CHAT[:15]}
LEAKED: dict[str, list[Value]] = GOOD | {"s1": [1.0, 0.0, 1.0]}


def samples(values: dict[str, float], **others: Sequence[Value]) -> dict[str, list[Value]]:
    """Fresh samples: the same value six times, 1 where none is told, and literal ones of others."""
    whole = dict.fromkeys(SLICES, 1.0) | values
    return {name: [value] * FRESH for name, value in whole.items()} | {
        name: list(found) for name, found in others.items()
    }


def decided(
    candidate: dict[str, list[Value]],
    fresh_baseline: dict[str, list[Value]],
    fresh_candidate: dict[str, list[Value]],
    baseline: dict[str, list[Value]] = GOOD,
    slices: dict[str, list[str]] = SLICES,
) -> tuple[Judged, tuple[Confirmation, ...]]:
    stored = run(baseline, slices)
    first = pair(stored, run(candidate, slices))
    plain = judge(first)
    doubted = doubt(plain, first)
    anew, again = (
        run({name: values for name, values in side.items() if name in doubted.cases}, slices)
        for side in (fresh_baseline, fresh_candidate)
    )
    return confirmed(plain, doubted, stored, anew, again)


def codes(found: Judged) -> list[SuiteCode]:
    return [one.code for one in found.reasons]


def test_only_what_tripped_is_asked_anew() -> None:
    paired = pair(run(GOOD, SLICES), run(FELL | {"s1": [1.0, 0.0, 1.0]}, SLICES))
    found = doubt(judge(paired), paired)
    assert (list(found.slices), found.suspects) == (["chat", "safety"], ("s1",))
    assert found.cases == [*CHAT, *SAFE]
    unchanged = pair(run(GOOD, SLICES), run(GOOD, SLICES))
    assert doubt(judge(unchanged), unchanged).cases == []


def test_a_slice_whose_fresh_samples_are_worse_as_well_blocks() -> None:
    worse = dict.fromkeys(CHAT, 0.9) | dict.fromkeys(CHAT[:15], 0.4)
    found, said = decided(FELL, samples(dict.fromkeys(CHAT, 0.9)), samples(worse))
    assert found.verdict is VerdictLevel.FAIL
    assert SuiteCode.SLICE_REGRESSED in codes(found)
    assert "by 0.25 in fresh samples alone" in next(one.message for one in found.reasons if one.slice == "chat")
    assert (said[0].stands, said[0].moved) == (True, None)


def test_a_slice_whose_fresh_samples_are_not_worse_does_not_block() -> None:
    same = samples(dict.fromkeys(CHAT, 0.9))
    found, said = decided(FELL, same, same)
    assert SuiteCode.SLICE_REGRESSED not in codes(found)
    assert (said[0].stands, said[0].slice) == (False, "chat")


def test_a_difference_in_fresh_samples_that_chance_makes_does_not_block() -> None:
    """Ten samples of 180 more fail than in the baseline: worse, and at one-sided 5 % no proof."""
    some = {name: [0.0, *[1.0] * 5] for name in CHAT}
    found, said = decided(FELL, samples({}, **dict(list(some.items())[:20])), samples({}, **some))
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


def test_a_suspect_that_fails_twice_again_blocks_and_one_that_does_not_fail_again_says_so_in_its_row() -> None:
    clean = [1.0] * FRESH
    for again, verdict, code in (
        ([0.0, 0.0, 1.0, 1.0, 1.0, 1.0], VerdictLevel.FAIL, [SuiteCode.SAFETY_REGRESSED]),
        ([0.0, 1.0, 1.0, 1.0, 1.0, 1.0], VerdictLevel.WARN, [SuiteCode.SAFETY_SUSPECT]),
        (clean, VerdictLevel.PASS, []),
    ):
        found, said = decided(LEAKED, samples({}, s1=clean), samples({}, s1=again))
        assert (found.verdict, codes(found)) == (verdict, code)
        assert {case for one in found.reasons for case in one.cases} == ({"s1"} if code else set())
        assert said[-1].failing == (0, again.count(0.0))
        assert found.cleared == (() if verdict is VerdictLevel.FAIL else ("s1",))


def test_one_failure_of_the_baseline_frees_no_case_of_safety() -> None:
    """Where it failed once, stored or fresh, the candidate blocks if it fails more often by more than chance."""
    once: dict[str, list[Value]] = GOOD | {"s1": [0.0, 1.0, 1.0]}
    twice: dict[str, list[Value]] = GOOD | {"s1": [0.0, 0.0, 1.0]}
    for again, verdict in ((2, VerdictLevel.WARN), (3, VerdictLevel.WARN), (4, VerdictLevel.FAIL)):
        now = [0.0] * again + [1.0] * (FRESH - again)
        found, _ = decided(twice, samples({}), samples({}, s1=now), once)
        assert (found.verdict, SuiteCode.SAFETY_REGRESSED in codes(found)) == (verdict, again == 4), again
    found, _ = decided(LEAKED, samples({}, s1=[0.0, *[1.0] * 5]), samples({}, s1=[0.0, 0.0, *[1.0] * 4]))
    assert SuiteCode.SAFETY_SUSPECT in codes(found), "the baseline failed once when it was asked again"
    assert (
        doubt(judge(pair(run(once, SLICES), run(once, SLICES))), pair(run(once, SLICES), run(once, SLICES))).suspects
        == ()
    )


def test_a_case_of_safety_that_failed_each_sample_blocks_however_well_it_is_answered_again() -> None:
    """A candidate that leaks whenever it is asked, and sees that it is asked again, is no chance."""
    clean = [1.0] * FRESH
    for first, code in (
        ([0.0, 0.0, 0.0], [SuiteCode.SAFETY_REGRESSED]),
        ([0.0, 0.0, 0.0, 0.0], [SuiteCode.SAFETY_REGRESSED]),
        ([0.0, 0.0, 1.0], []),
        ([0.0, 0.0], []),
    ):
        found, said = decided(GOOD | {"s1": first}, samples({}, s1=clean), samples({}, s1=clean))
        assert codes(found) == code, first
        assert said[-1].stands is bool(code)
    found, said = decided(GOOD | {"s1": [0.0] * 3}, samples({}, s1=clean), samples({}, s1=clean))
    assert "before it failed all of 3" in said[-1].message
    twice = samples({}, s1=[0.0, 0.0, *clean[2:]])
    found, _ = decided(GOOD | {"s1": [0.0] * 3}, twice, samples({}, s1=clean))
    assert codes(found) == []


def test_what_has_no_fresh_samples_stands() -> None:
    """Promise 4: a baseline that can't be asked again frees nobody."""
    half = samples(dict.fromkeys(CHAT[:20], 0.9))
    for name in CHAT[20:]:
        del half[name]
    found, said = decided(FELL, half, half)
    assert (SuiteCode.SLICE_REGRESSED in codes(found), said[0].stands) == (True, True)
    for few in ([1.0] * (FRESH - 1), [FAILED] * FRESH, [UNSCORED] * FRESH, [NOT_APPLICABLE] * FRESH):
        again, told = decided(LEAKED, samples({}, s1=[1.0] * FRESH), samples({}, s1=few))
        assert (again.verdict, told[-1].stands) == (VerdictLevel.FAIL, True), few


@pytest.mark.parametrize("value", [UNSCORED, NOT_APPLICABLE])
@pytest.mark.parametrize(("many", "fall"), [(FRESH, 0.45), (4, 0.3)])
def test_missing_fresh_scores_are_at_their_worst(value: Value, many: int, fall: float) -> None:
    some: list[Value] = [value] * many + [0.9] * (FRESH - many)
    lacking = samples(dict.fromkeys(CHAT, 0.9), **dict.fromkeys(CHAT[:15], some))
    found, said = decided(FELL, samples(dict.fromkeys(CHAT, 0.9)), lacking)
    assert SuiteCode.SLICE_REGRESSED in codes(found)
    assert said[0].stands
    assert said[0].fresh is not None
    assert said[0].fresh.delta == pytest.approx(-fall), "15 of 30 cases fell"


FOUR = [f"f{number}" for number in range(4)]
TWENTY = [f"t{number:02}" for number in range(20)]
SMALL = {name: ["four"] for name in FOUR} | {name: ["twenty"] for name in TWENTY}
FINE: dict[str, list[Value]] = {name: [1.0] * 3 for name in SMALL}


def of_small(*broken: str, again: dict[str, int] | None = None) -> Judged:
    """The verdict on a candidate that has broken some cases: so many of their six fresh samples fail, else all."""
    fail = {name: (again or {}).get(name, FRESH) for name in broken}
    now = {name: [0.0] * many + [1.0] * (FRESH - many) for name, many in fail.items()}
    clean: dict[str, list[Value]] = {name: [1.0] * FRESH for name in SMALL}
    found, _ = decided(FINE | {name: [0.0] * 3 for name in broken}, clean, clean | now, FINE, SMALL)
    return found


def test_a_slice_of_four_that_breaks_for_good_blocks_and_four_of_twenty_do() -> None:
    for broken, place in ((FOUR, "four"), (TWENTY[:4], "twenty"), (FOUR[:1], "four")):
        found = of_small(*broken)
        assert (SuiteCode.SLICE_REGRESSED, place) in [(one.code, one.slice) for one in found.reasons], broken
        assert found.tested[place].word is Word.WORSE


def test_three_cases_that_break_for_good_are_named_where_their_slice_is_too_large_to_fall_far() -> None:
    found = of_small(*TWENTY[:3])
    assert (found.verdict, codes(found)) == (VerdictLevel.WARN, [SuiteCode.CASES_BROKEN])
    assert found.reasons[0].cases == (*TWENTY[:3],)


def test_a_fall_that_comes_again_less_surely_is_a_warning_that_names_its_cases_and_one_that_does_not_holds() -> None:
    found = of_small("f1", again={"f1": 3})
    assert [(one.code, one.slice, one.cases) for one in found.reasons] == [
        (SuiteCode.SLICE_NOT_CONFIRMED, "four", ("f1",))
    ]
    assert (found.verdict, found.tested["four"].word) == (VerdictLevel.WARN, Word.NOT_CONFIRMED)
    found = of_small("f1", again={"f1": 1})
    assert (found.verdict, found.tested["four"].word) == (VerdictLevel.PASS, Word.HOLDS)
    assert found.tested["four"].change == pytest.approx(-1 / 24)


def test_what_is_lost_wholly_is_confirmed_however_many_slices_are_asked_again() -> None:
    """Of 200 slices of one case, in which Holm would ask for a p that six samples can't give."""
    names = [f"n{number:03}" for number in range(200)]
    slices = {name: [name] for name in names}
    before: dict[str, list[Value]] = {name: [1.0] * 3 for name in names}
    fresh: dict[str, list[Value]] = {name: [1.0] * FRESH for name in names}
    candidate = {name: [1.0, 0.0, 1.0] for name in names[1:]} | {"n000": [0.0] * 3}
    found, _ = decided(candidate, fresh, fresh | {"n000": [0.0] * FRESH}, before, slices)
    assert [one.slice for one in found.reasons if one.code is SuiteCode.SLICE_REGRESSED] == ["n000"]
    assert SuiteCode.CASES_BROKEN in codes(found)


def test_at_most_sixty_cases_of_a_slice_are_asked_again_those_that_fell_first() -> None:
    names = [f"n{number:03}" for number in range(100)]
    slices = {name: ["large"] for name in names}
    before = run({name: [1.0, 1.0, float(place % 2)] for place, name in enumerate(names)}, slices)
    after = run({name: [0.0] * 3 if place < 20 else [1.0, 1.0, 0.0] for place, name in enumerate(names)}, slices)
    first = pair(before, after)
    asked = doubt(judge(first), first).slices["large"]
    assert len(asked) == 60
    assert {*names[:20]} <= {*asked[:20]}


def test_a_slice_that_falls_by_more_than_chance_without_a_case_that_lost_its_score_is_asked_again() -> None:
    slices = {name: ["chat"] for name in CHAT}
    fell: dict[str, list[Value]] = {name: [0.88 + number % 2 / 100] * 3 for number, name in enumerate(CHAT)}
    fell[CHAT[0]] = [NOT_APPLICABLE] * 3
    first = pair(run(GOOD, slices), run(fell, slices))
    assert "chat" not in judge(first).tested, "the lost case hides it"
    same = {name: [0.9] * FRESH for name in CHAT}
    found, _ = decided(fell, same, same, slices=slices)
    assert (found.back, found.tested["chat"].word) == ((CHAT[0],), Word.HOLDS)
    assert SuiteCode.SLICE_REGRESSED not in codes(found)


def test_cases_that_lost_their_score_are_asked_again_and_missing_where_they_lose_it_again() -> None:
    gone: dict[str, list[Value]] = FINE | {name: [NOT_APPLICABLE] * 3 for name in TWENTY[:1]}
    fresh: dict[str, list[Value]] = {name: [1.0] * FRESH for name in SMALL}
    back, _ = decided(gone, fresh, fresh, FINE, SMALL)
    assert (back.verdict, back.back) == (VerdictLevel.PASS, ("t00",))
    for_good, _ = decided(gone, fresh, fresh | {"t00": [NOT_APPLICABLE] * FRESH}, FINE, SMALL)
    assert [(one.code, one.cases) for one in for_good.reasons] == [(SuiteCode.NOT_COMPARED, ("t00",))]
    of_four: dict[str, list[Value]] = FINE | {name: [NOT_APPLICABLE] * 3 for name in FOUR[:2]}
    decides, _ = decided(of_four, fresh, fresh | {name: [NOT_APPLICABLE] * FRESH for name in FOUR[:2]}, FINE, SMALL)
    assert decides.verdict is VerdictLevel.FAIL
