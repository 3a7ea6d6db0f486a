"""What holds for every gate, whatever its judges said."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evalcore.gates.decision import Evidence, Judged, decide
from evalcore.gates.limits import Limits, aggregate
from evalcore.gates.requests import milestones, of_step
from evalcore.scoring.answers import Answer, NotApplicable, Scored, Unscored, collect
from schemas.judges import Enforcement, Milestone
from schemas.verdicts import Action, Code, VerdictLevel

SCALE = (1.0, 5.0)
ORDER = list(VerdictLevel)
VALUES = st.floats(1, 5) | st.sampled_from([float("nan"), 0.0, 9.0])
WEIGHTS = st.floats(0.1, 50)
ANSWERS: st.SearchStrategy[list[Answer]] = st.lists(
    st.builds(Scored, VALUES, WEIGHTS) | st.just(NotApplicable()) | st.builds(Unscored, st.just("down"), WEIGHTS),
    max_size=30,
)
JUDGED = st.builds(
    lambda answers, threshold, floor, tolerance, enforcement, history, overdue: Judged(
        collect(answers, SCALE),
        Limits.of(threshold, floor, tolerance, enforcement, history),
        SCALE,
        overdue_days=overdue,
    ),
    ANSWERS,
    st.floats(1, 5),
    st.floats(1, 5),
    st.floats(0, 2),
    st.sampled_from(Enforcement),
    st.lists(st.floats(1, 5), max_size=4),
    st.sampled_from([0, 0, 3]),
)
GATES = st.dictionaries(st.sampled_from("abcd"), JUDGED, min_size=1)
ENOUGH = Evidence(100, 20)
MILESTONES = st.sampled_from(Milestone)


@given(st.lists(st.builds(Scored, st.sampled_from([0.0, 1.0]) | st.floats(0, 1), WEIGHTS), min_size=2), st.booleans())
def test_what_was_scored_lies_within_its_interval_and_that_on_the_scale(answers: list[Scored], boolean: bool) -> None:
    """A rate of 1 over 110 items, too, whatever rounding makes of its bounds."""
    given = [replace(one, value=float(one.value >= 0.5)) if boolean else one for one in answers]
    found = aggregate(collect(given, (0.0, 1.0)), (0.0, 1.0), boolean)
    if found.ci95 is not None and found.worst is not None:
        low, high = found.ci95
        assert 0.0 <= low <= found.worst <= high <= 1.0


def test_a_rate_of_one_ends_its_interval() -> None:
    for n in range(2, 200):
        found = aggregate(collect([Scored(1.0)] * n, (0.0, 1.0)), (0.0, 1.0), boolean=True)
        assert found.ci95 is not None
        assert found.ci95[1] == 1.0, n


@given(ANSWERS)
def test_every_answer_is_counted_once(answers: list[Answer]) -> None:
    found = collect(answers, SCALE)
    assert found.n + found.not_applicable == len(answers)
    assert len(found.missing) >= sum(isinstance(answer, Unscored) for answer in answers)


@given(ANSWERS)
def test_the_truth_lies_between_worst_and_best_on_the_scale(answers: list[Answer]) -> None:
    collected = collect(answers, SCALE)
    found = aggregate(collected, SCALE, boolean=False)
    if found.worst is None or found.best is None:
        assert collected.n == 0
        return
    assert SCALE[0] <= found.worst <= found.best <= SCALE[1]
    assert (found.worst == found.best) or collected.missing


@given(GATES, MILESTONES)
def test_a_passing_gate_has_no_failing_judge_and_no_reason(judged: dict[str, Judged], milestone: Milestone) -> None:
    verdict = decide(milestone, judged, ENOUGH)
    assert (verdict.verdict is VerdictLevel.PASS) == (verdict.failing_judges == []) == (verdict.reasons == [])
    assert set(verdict.per_judge_scores) == set(judged)


@given(GATES, MILESTONES, st.sampled_from("abcd"), st.integers(1, 20))
def test_a_lost_answer_never_makes_a_verdict_better(
    judged: dict[str, Judged], milestone: Milestone, name: str, lost: int
) -> None:
    """Promise 4: unscored never counts as passed."""
    if name not in judged:
        return
    before = decide(milestone, judged, ENOUGH)
    answers = judged[name].answers
    taken = answers.weights[:lost]
    less = replace(
        answers, values=answers.values[lost:], weights=answers.weights[lost:], missing=(*answers.missing, *taken)
    )
    after = decide(milestone, {**judged, name: replace(judged[name], answers=less)}, ENOUGH)
    assert ORDER.index(after.verdict) >= ORDER.index(before.verdict)


@given(GATES, MILESTONES)
def test_the_order_of_judges_changes_nothing(judged: dict[str, Judged], milestone: Milestone) -> None:
    backwards = dict(reversed(judged.items()))
    assert decide(milestone, judged, ENOUGH) == decide(milestone, backwards, ENOUGH)


@given(GATES, MILESTONES)
def test_below_the_floor_always_blocks(judged: dict[str, Judged], milestone: Milestone) -> None:
    verdict = decide(milestone, judged, ENOUGH)
    for found in verdict.per_judge_scores.values():
        if found.score is not None and found.score < found.floor - 1e-6 and found.unscored == 0:
            assert found.rule is Code.FLOOR_BREACH
            assert verdict.verdict is VerdictLevel.FAIL


@given(GATES, st.floats(0, 99), st.floats(0.1, 100))
def test_a_failed_step_halts_where_the_contract_says(judged: dict[str, Judged], at: float, to: float) -> None:
    fired = milestones(at, to)
    step = of_step(at, [decide(milestone, judged, ENOUGH) for milestone in fired])
    if not fired:
        assert (step.verdict, step.deciding, step.reasons[0].code) == (VerdictLevel.PASS, None, Code.NO_GATE_AT_STEP)
        return
    assert step.deciding is not None
    assert (step.action is Action.HALT) == (step.verdict is VerdictLevel.FAIL)
    if step.verdict is VerdictLevel.FAIL:
        assert step.halt_at_percent == (0 if step.deciding.milestone is Milestone.PRE_RAMP else at)
