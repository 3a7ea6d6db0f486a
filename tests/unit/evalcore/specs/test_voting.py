"""One judge's vote, or several: the majority's label and the mean, and what is missing (AgentCI 2.0, Step 2.5)."""

from __future__ import annotations

from collections import Counter
from itertools import product
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.specs.rubric import LABELS, RubricAnswer, contradicts
from evalcore.specs.voting import decide
from schemas.specs import Rubric

POSSIBLE = [(label, score) for label, score in product(LABELS, range(1, 6)) if not contradicts(label, score, (1, 5))]


def rubric(threshold: float = 0.6) -> Rubric:
    return Rubric(rule="it is polite", threshold=threshold)


def votes(*said: tuple[str, int] | None) -> dict[str, RubricAnswer]:
    return {
        f"llm_judge_1_vote_{number}_of_{len(said)}": (
            RubricAnswer(float(one[1]), one[0], "since", f"m{number}") if one else RubricAnswer(None, None, "timeout")
        )
        for number, one in enumerate(said, 1)
    }


@pytest.mark.parametrize(
    ("label", "score", "passed"),
    [("pass", 3, True), ("borderline", 3, True), ("borderline", 2, False), ("fail", 3, False), ("pass", 5, True)],
)
def test_one_judge_decides_by_score_and_label(label: str, score: int, passed: bool) -> None:
    found = decide(rubric(), {"safety_check": RubricAnswer(float(score), label, "since", "m")})
    assert found.passed is passed
    assert found.details == {
        "rule": "it is polite", "threshold": 0.6, "passed": passed, "score": score, "label": label,
        "rationale": "since", "model": "m",
    }  # fmt: skip


# AgentCI Step 2.5 box 4.
@pytest.mark.parametrize(
    ("said", "passed"),
    [
        ([("pass", 4), ("pass", 3), ("fail", 2)], True),
        ([("pass", 3), ("pass", 3), ("fail", 1)], False),
        ([("pass", 5), ("fail", 1), ("borderline", 5)], False),
        ([("pass", 5), ("fail", 3)], False),
        ([("fail", 3), ("fail", 3), ("pass", 5)], False),
        ([("borderline", 3), ("borderline", 3), ("fail", 3)], True),
    ],
)
def test_more_than_half_of_the_votes_and_the_mean_decide(said: list[tuple[str, int]], passed: bool) -> None:
    assert decide(rubric(), votes(*said)).passed is passed


def test_single_verdicts_are_told() -> None:
    found = decide(rubric(), votes(("pass", 4), None, ("pass", 5)))
    assert found.details["individual_verdicts"] == [
        {"model": "m1", "score": 4.0, "label": "pass", "rationale": "since"},
        {"model": "", "score": None, "label": None, "rationale": "timeout"},
        {"model": "m3", "score": 5.0, "label": "pass", "rationale": "since"},
    ]
    assert found.details["rationale"] == "Ensemble (3 judges): ['pass', 'no answer', 'pass']"
    assert (found.details["label"], found.details["score"]) == ("pass", 4.5)


# AgentCI Step 2.5 box 4.
@pytest.mark.parametrize(
    ("said", "passed"),
    [
        ([("pass", 5), ("pass", 5), None], True),
        ([("pass", 4), ("pass", 4), None], True),
        ([("pass", 3), ("pass", 4), None], None),
        ([("fail", 1), ("fail", 1), None], False),
        ([("pass", 5), ("fail", 1), None], None),
        ([None, None, None], None),
        ([None], None),
    ],
)
def test_a_missing_vote_that_could_change_it_leaves_it_open(
    said: list[tuple[str, int] | None], passed: bool | None
) -> None:
    found = decide(rubric(), votes(*said))
    assert (found.passed, found.why) == (passed, "timeout" if passed is None else "")


def test_a_vote_that_is_not_there_at_all_is_missing() -> None:
    two = {name: one for name, one in votes(("pass", 3), ("pass", 4), ("pass", 5)).items() if "_3_" not in name}
    assert decide(rubric(), two).passed is None
    assert decide(rubric(), {}).passed is None


@given(
    st.lists(st.none() | st.sampled_from(POSSIBLE), min_size=1, max_size=4).filter(lambda said: said.count(None) < 3),
    st.sampled_from([0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0]),
)
def test_it_is_decided_where_every_completion_agrees(said: list[tuple[str, int] | None], threshold: float) -> None:
    def passes(whole: list[tuple[str, int]]) -> bool:
        label, count = Counter(label for label, _ in whole).most_common(1)[0]
        return 2 * count > len(whole) and label != "fail" and round(mean(s for _, s in whole) / 5, 9) >= threshold

    cast = [one for one in said if one is not None]
    outcomes = {passes([*cast, *more]) for more in product(POSSIBLE, repeat=said.count(None))}
    expected = outcomes.pop() if len(outcomes) == 1 else None
    assert decide(rubric(threshold), votes(*said)).passed is expected
