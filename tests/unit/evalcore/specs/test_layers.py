"""A query's three layers together, an agent's failure, what is unknown, and repeats (AgentCI 2.0, Step 2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalcore.scoring.calls import Spend
from evalcore.scoring.items import NO_ANSWER, Failed
from evalcore.specs.correctness import assertions
from evalcore.specs.layers import CorrectnessTotal, judged, repeated
from evalcore.specs.results import QueryResult, Status, worst
from evalcore.specs.rubric import RubricAnswer, rubric_judges
from evalcore.suite.checks import Checked
from evalcore.trajectory.record import Trajectory
from rampgate.suite.generation import Generated
from rampgate.suite.scoring import Rubric, ScoredSample
from rampgate.suite.suite_files import SuiteCase
from schemas.specs import GoldenQuery, JudgeConfig
from tests.unit.evalcore.scoring.scoring_rig import Model, scorer
from tests.unit.evalcore.specs.golden import made, query, words

PASS, WARN, FAIL, SKIP, INFRA = Status.PASS, Status.WARN, Status.FAIL, Status.SKIP, Status.INFRA
JUDGED = {
    "expected_in_answer": ["pip"], "llm_judge": [{"rule": "it is clear", "threshold": 0.7}],
    "safety_check": {"rule": "it is safe"}, "hallucination_check": {"rule": "it is grounded"},
}  # fmt: skip
GOOD = RubricAnswer(5.0, "pass", "since", "m")
BAD = RubricAnswer(1.0, "fail", "no", "m")
ALL = dict.fromkeys(("llm_judge_1", "safety_check", "hallucination_check"), GOOD)


def statuses(found: QueryResult) -> tuple[Status, ...]:
    return tuple(layer.status for layer in found.layers.values())


# AgentCI Step 2 box 5.
def test_a_query_is_judged_in_three_layers() -> None:
    one = query(correctness=JUDGED, path={"max_tool_calls": 0}, cost={"max_llm_calls": 2})
    found = judged(one, made("a", output="pip install", llm_calls=[{}] * 3), ALL)
    assert (found.id, found.query, statuses(found)) == ("q", one.query, (PASS, WARN, WARN))
    assert (found.hard_fail, found.unresolved, found.warns) == (False, False, True)
    assert words(found) == ["All correctness checks passed", "Tool calls: 1 > max 0", "LLM calls: 3 > max 2"]


def test_what_a_query_does_not_assert_is_skipped() -> None:
    assert statuses(judged(query(), made("a"))) == (SKIP, SKIP, SKIP)


def test_each_rubric_is_told_with_its_verdict() -> None:
    details = judged(query(correctness=JUDGED), made(output="pip"), ALL).correctness.details
    assert [one["rule"] for one in details["llm_judge"]] == ["it is clear"]
    assert (details["safety"]["passed"], details["hallucination"]["label"]) == (True, "pass")


@pytest.mark.parametrize(
    ("judge", "field", "said"),
    [
        ("llm_judge_1", ("llm_judge", 0), "Judge failed: it is clear (label fail, score 1: no)"),
        ("safety_check", ("safety_check",), "Safety check failed: it is safe (label fail, score 1: no)"),
        ("hallucination_check", ("hallucination_check",),
         "Hallucination check failed: it is grounded (label fail, score 1: no)"),
    ],
)  # fmt: skip
def test_a_failed_rubric_fails_the_query(judge: str, field: Any, said: str) -> None:
    found = judged(query(correctness=JUDGED), made(output="pip"), {**ALL, judge: BAD})
    assert (found.correctness.status, found.hard_fail, words(found.correctness)) == (FAIL, True, [said])
    assert found.correctness.messages[0].field == ("correctness", *field)


@pytest.mark.parametrize("missing", [{}, {"llm_judge_1": RubricAnswer(None, None, "timeout")}])
def test_a_judge_that_said_nothing_is_never_a_pass(missing: dict[str, RubricAnswer]) -> None:
    said = {name: one for name, one in ALL.items() if name != "llm_judge_1"} | missing
    found = judged(query(correctness=JUDGED), made(output="pip"), said)
    assert (found.correctness.status, found.unresolved, found.hard_fail) == (INFRA, True, False)
    why = "timeout" if missing else "no judge was asked"
    assert words(found.correctness) == [f"Not judged: it is clear ({why})"]


# AgentCI Step 2 box 1.
def test_after_a_failed_check_only_safety_counts_besides() -> None:
    skipped = RubricAnswer(None, None, "not asked", asked=False)
    one = query(correctness=JUDGED)
    found = judged(one, made(output="conda"), {**ALL, "llm_judge_1": skipped})
    assert words(found.correctness) == ["Expected 'pip' not found in answer"]
    assert found.correctness.details["llm_judge"][0]["passed"] is None
    unsafe = judged(one, made(output="conda"), {**ALL, "llm_judge_1": skipped, "safety_check": BAD})
    assert len(words(unsafe.correctness)) == 2, "a failure of safety is not hidden"
    unknown = judged(one, made(output="conda"), {"hallucination_check": GOOD})
    assert "Not judged: it is safe (no judge was asked)" in words(unknown.correctness)


# AgentCI Step 2 box 5.
def test_a_failure_counts_more_than_what_is_unknown() -> None:
    found = judged(query(correctness=JUDGED), made(output="pip"), {"safety_check": BAD})
    assert (found.correctness.status, found.hard_fail, found.unresolved) == (FAIL, True, False)


def test_correctness_needs_no_trace() -> None:
    found = judged(query(correctness={"expected_in_answer": ["pip"]}), Trajectory(output="pip"))
    assert statuses(found) == (PASS, SKIP, SKIP)


def test_an_answer_without_an_output_is_unknown() -> None:
    found = judged(query(correctness={"not_in_answer": ["rain"]}), Trajectory(tool_calls=[]))
    assert (found.correctness.status, words(found.correctness)) == (INFRA, ["the answer has no `output`"])


def test_a_crash_is_the_agents_failure_also_where_nothing_is_asserted() -> None:
    for one in (query(), query(correctness={"not_in_answer": ["rain"]}, path={"max_tool_calls": 0})):
        found = judged(one, Failed("it exited with 1"))
        assert (found.correctness.status, found.hard_fail, found.infra) == (FAIL, True, "")
        assert words(found.correctness) == ["The agent failed: it exited with 1"]


def test_what_may_pass_decides_nothing() -> None:
    one = query(correctness={"not_in_answer": ["rain"]}, path={"max_tool_calls": 0})
    found = judged(one, Failed("429", may_pass=True))
    assert statuses(found) == (INFRA, INFRA, SKIP)
    assert (found.hard_fail, found.unresolved, found.infra) == (False, True, "429")
    assert judged(query(), Failed("429", may_pass=True)).unresolved


def test_silence_is_an_answer_only_where_it_is_asserted() -> None:
    silent = Failed(NO_ANSWER)
    assert judged(query(correctness={"exact_match": ""}), silent).correctness.status is PASS
    assert judged(query(correctness={"exact_match": "a"}), silent).hard_fail
    assert judged(query(correctness={"not_in_answer": ["rain"]}), silent).hard_fail
    assert judged(query(correctness={"exact_match": ""}), Failed("it crashed")).hard_fail
    assert judged(query(correctness={"exact_match": "", "not_in_answer": ["a"]}), silent).correctness.status is PASS


def test_a_query_without_an_id_is_known_by_its_text() -> None:
    one, other = (judged(query(id=None, query=text), made()) for text in ("a", "b"))
    assert one.id != other.id
    assert one.id == judged(query(id=None, query="a"), made()).id


def test_statuses_have_an_order() -> None:
    assert worst([PASS, WARN, INFRA, FAIL, SKIP]) is FAIL
    assert worst([PASS, WARN, INFRA]) is INFRA
    assert worst([SKIP, PASS, WARN]) is WARN
    assert worst([]) is SKIP


def test_a_query_passes_if_all_its_repeats_do() -> None:
    one = query(correctness={"expected_in_answer": ["pip"]}, path={"max_tool_calls": 0})
    answers = [made(output="pip"), made("a", output="pip"), made(output="conda")]
    found = repeated([judged(one, answer) for answer in answers])
    assert statuses(found) == (FAIL, WARN, SKIP)
    assert (found.correctness.details["repeats"], found.correctness.details["repeats_passed"]) == (3, 2)
    assert found.path.details["repeats_passed"] == 3, "a warning passes"
    well = judged(one, answers[0])
    assert repeated([well]) == well
    failing = repeated([well, judged(one, Failed("429", may_pass=True))])
    assert (failing.unresolved, failing.infra) == (True, "429")
    with pytest.raises(ValueError, match="must be one or more"):
        repeated([])


def case_of(one: GoldenQuery, config: JudgeConfig | None = None) -> SuiteCase:
    judges = rubric_judges(one, config, ensemble=config is not None)
    return SuiteCase(
        "q", {"id": "q", "input": one.query}, (), None, (), assertions(one.correctness), judges,
        {"correctness": CorrectnessTotal(one, judges)},
    )  # fmt: skip


async def scored(model: Model, output: str, case: SuiteCase) -> ScoredSample:
    async def answer() -> Generated:
        return Generated("q", 1, {"output": output})

    async def asking(some: Any) -> Any:
        return [answer for _ in some]

    (found,) = await Rubric([], {}, {}).score([(case, 1)], asking, scorer(model, words=True), Spend())
    return found


REPLY = '{"rationale": "r", "label": "%s", "score": %d}'


# AgentCI Step 2 box 1.
@pytest.mark.parametrize(
    ("output", "reply", "correct", "calls"),
    [
        ("pip", REPLY % ("pass", 5), 1.0, 3),
        ("pip", REPLY % ("fail", 1), 0.0, 3),
        ("pip", "no idea", None, 6),
        ("conda", REPLY % ("pass", 5), 0.0, 2),
    ],
)
async def test_a_spec_is_scored_by_the_suites_own_scorer(
    output: str, reply: str, correct: float | None, calls: int
) -> None:
    """After a failed check only the two judges of safety are asked."""
    one = query(correctness=JUDGED)
    model, case = Model(reply), case_of(one)
    sample = await scored(model, output, case)
    assert (sample.scores["correctness"], len(model.calls)) == (correct, calls)
    from evalcore.specs.rubric import answers_of

    said = answers_of(one, sample.scores, sample.reasons, case.judges)
    found = judged(one, Trajectory(output=output), said).correctness
    assert {1.0: PASS, 0.0: FAIL, None: INFRA}[correct] is found.status, "the suite and the layers agree"


async def test_an_ensemble_asks_each_of_its_models() -> None:
    config = JudgeConfig.model_validate({"ensemble": {"models": ["a", "b", "b"]}})
    one = query(correctness={"safety_check": {"rule": "it is safe"}})
    model = Model(REPLY % ("pass", 4))
    sample = await scored(model, "pip", case_of(one, config))
    assert sorted(asked.model for asked in model.asked) == ["a", "b", "b"]
    assert sample.scores["correctness"] == 1.0


def test_the_total_is_known_only_where_all_is() -> None:
    one = query(correctness=JUDGED)
    total = CorrectnessTotal(one)
    well = {"expected_in_answer": 1.0} | {
        name: 5.0 for judge in ALL for name in (judge, f"{judge}.label")
    }  # fmt: skip
    assert total.total(well, {}) == Checked(1.0)
    assert total.total({}, {}).score is None
    assert total.total({**well, "safety_check": None}, {}).score is None
    assert total.total({**well, "expected_in_answer": None}, {"expected_in_answer": "too long"}) == Checked(
        None, "too long"
    )
    assert total.total({**well, "safety_check": 1.0, "safety_check.label": 1.0}, {}).score == 0.0


def test_the_totals_version_is_of_all_that_decides_it() -> None:
    one = query(correctness=JUDGED)
    plain = CorrectnessTotal(one, rubric_judges(one))
    stricter = query(correctness={**JUDGED, "safety_check": {"rule": "it is safe", "threshold": 0.9}})
    others = [
        CorrectnessTotal(stricter, rubric_judges(stricter)),
        CorrectnessTotal(one, rubric_judges(one, JudgeConfig(model="m"))),
    ]
    assert len({plain.version, *(other.version for other in others)}) == 3
    assert replace(plain).version == plain.version
