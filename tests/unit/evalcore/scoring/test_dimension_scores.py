"""A judge whose score is the mean of its dimensions, and dimensions that apply only where the item says so."""

from __future__ import annotations

import asyncio
import json
import statistics
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.judges.evaluator import Evaluation, NoScore, Task
from evalcore.judges.llm_judge import render
from evalcore.judges.score_parsing import read
from evalcore.scoring.answers import NotApplicable, Scored, Unscored, judgement, worst
from evalcore.scoring.cache import MemoryScoreCache, kept, written
from evalcore.scoring.opik_metric import LLMJudgeMetric
from evalcore.suite.pairwise.question import pair_judge
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.scoring.opik_models import ChatOnly
from tests.unit.evalcore.scoring.scoring_rig import Model, scorer

FILE = (
    "{score_type: FLOAT, score_range: [0, 1], floor: 0.5, tolerance: 0.1, threshold: 0.75, score_of: dimensions, "
    "dimensions: {diagnosis: {description: D, applies: steps.analysis}, action: {description: A, applies: "
    "steps.execution}, tone: {description: T}}}"
)
REGISTRY = built({"rules/brevity.yaml": FILE})
JUDGE = REGISTRY.judge("brevity")
SCORES = st.none() | st.floats(0, 1)
STATES = ("ran", "broke", "absent", "unread")


def task(analysis: Any = "ran", execution: Any = "ran", judge: Any = JUDGE, **more: Any) -> Task:
    steps = {"analysis": analysis, "execution": execution}
    return Task(judge, "item", "offline", {"input": "how?", "output": "so!", "steps": steps, **more})


def reply(diagnosis: Any, action: Any, tone: Any, **more: Any) -> str:
    return json.dumps({"reason": "r", "dimensions": {"diagnosis": diagnosis, "action": action, "tone": tone}, **more})


def scored(analysis: str, execution: str, text: str) -> Any:
    return judgement(task(analysis, execution), read(text, JUDGE))


@pytest.mark.parametrize(
    "more", [{}, {"score": 0.1}, {"average": 0.1}, {"score": "N/A"}, {"score": None, "average": []}]
)
def test_the_score_is_the_mean_whatever_average_the_model_gives_or_leaves_out(more: Any) -> None:
    assert read(reply(0.9, 0.6, 0.3, **more), JUDGE).value == pytest.approx(0.6)


def test_dimensions_that_do_not_apply_leave_the_mean_and_all_of_them_leave_no_score() -> None:
    assert read(reply(0.9, "N/A", 0.3), JUDGE).value == pytest.approx(0.6)
    assert read(reply("N/A", "N/A", "N/A"), JUDGE).value is None
    assert scored("ran", "broke", reply(0.9, "N/A", "N/A")).answer == Scored(0.9)
    assert scored("absent", "absent", reply(0.9, 0.9, "N/A")).answer == NotApplicable()


@pytest.mark.parametrize(
    "text",
    [
        "0.8", '{"score": 0.8, "reason": "r"}', reply(0.9, 0.6, None), reply(0.9, 0.6, "0.3"), reply(1.1, 0.6, 0.3),
        reply(0.9, 0.6, True), reply(0.9, 0.6, 0.3, rationale="x"), "Average: 0.6", reply(0.9, 0.6, 0.3)[:-2],
        '{"reason": "r", "dimensions": {"diagnosis": 0.9, "action": 0.6}}', '{"reason": "r", "dimensions": [0.9, 0.6]}',
        '{"dimensions": {"diagnosis": 1, "action": 1, "tone": 1}}',
    ],
)  # fmt: skip
def test_an_answer_without_each_dimension_once_is_no_score(text: str) -> None:
    with pytest.raises(NoScore):
        read(text, JUDGE)


TABLE = {  # what the item says, whether the model gave a score -> the dimension's answer
    ("ran", True): Scored, ("ran", False): Unscored, ("broke", True): Scored, ("broke", False): NotApplicable,
    ("absent", True): NotApplicable, ("absent", False): NotApplicable, ("unread", True): Unscored,
    ("unread", False): Unscored,
}  # fmt: skip


@pytest.mark.parametrize(("analysis", "execution"), list(product(STATES, STATES)))
@pytest.mark.parametrize(("diagnosis", "action"), list(product([0.9, "N/A"], [0.5, "N/A"])))
def test_a_dimension_is_answered_as_the_item_lets_it(
    analysis: str, execution: str, diagnosis: Any, action: Any
) -> None:
    found = scored(analysis, execution, reply(diagnosis, action, 0.1))
    parts = {"diagnosis": TABLE[analysis, diagnosis != "N/A"], "action": TABLE[execution, action != "N/A"]}
    assert {name: type(found.dimensions[name]) for name in parts} == parts
    if Unscored in parts.values():
        assert isinstance(found.answer, Unscored)
    else:
        given = [one.value for one in found.dimensions.values() if isinstance(one, Scored)]
        assert found.answer == Scored(statistics.fmean(given))


@pytest.mark.parametrize("state", [None, "", "RAN", "done", True, 1, {}, ["ran"]])
def test_what_is_no_word_of_the_item_leaves_the_score_unscored(state: Any) -> None:
    found = judgement(task(execution=state), read(reply(0.9, 0.9, 0.9), JUDGE))
    assert isinstance(found.dimensions["action"], Unscored)
    assert isinstance(found.answer, Unscored)


def test_an_item_that_says_nothing_of_its_steps_is_unscored_and_says_where_it_was_looked_for() -> None:
    bare = replace(task(), source={"input": "how?", "output": "so!"})
    found = judgement(bare, read(reply(0.9, 0.9, 0.9), JUDGE))
    assert isinstance(found.answer, Unscored)
    assert "steps.analysis" in found.answer.reason


@given(st.tuples(SCORES, SCORES, SCORES), st.sampled_from(STATES), st.sampled_from(STATES))
def test_a_score_is_never_above_what_the_model_said_of_a_part_that_counts(
    said: tuple[Any, Any, Any], analysis: str, execution: str
) -> None:
    text = reply(*("N/A" if one is None else one for one in said))
    found = scored(analysis, execution, text).answer
    if isinstance(found, Scored):
        counted = [one for one, state in zip(said, (analysis, execution, "ran"), strict=True) if state != "absent"]
        assert (
            min(one for one in counted if one is not None) - 1e-9
            <= found.value
            <= max(one for one in counted if one is not None) + 1e-9
        )


def test_what_an_item_says_of_its_steps_is_no_part_of_the_question() -> None:
    """So that a kept answer serves whatever the cluster says later."""
    model = Model(reply(0.9, "N/A", 0.3))
    of, cache = scorer(model, MemoryScoreCache()), task(execution="ran")

    async def both() -> Any:
        return [await of.score("g", [cache]), await of.score("g", [task(execution="broke")])]

    (ran,), (broke,) = asyncio.run(both())
    assert isinstance(ran.answer, Unscored)
    assert broke.answer == Scored(0.6)
    assert len(model.calls) == 1


@given(st.tuples(SCORES, SCORES, SCORES))
def test_a_kept_answer_is_read_as_it_was_given(said: tuple[Any, Any, Any]) -> None:
    answer = read(reply(*("N/A" if one is None else one for one in said)), JUDGE)
    assert kept(written(answer, JUDGE, words=True), JUDGE) == answer


def test_of_windows_the_worst_of_each_dimension_makes_the_score() -> None:
    said = [
        Evaluation(0.6, "a", {"diagnosis": 0.9, "action": 0.3, "tone": 0.6}),
        Evaluation(0.7, "b", {"diagnosis": 0.5, "action": 0.9, "tone": 0.7}),
    ]
    assert judgement(task(), worst(JUDGE, said)).answer == Scored(statistics.fmean([0.5, 0.3, 0.6]))


def test_the_model_is_asked_for_dimensions_and_for_no_score() -> None:
    asked = render(JUDGE, "offline", task().source)
    assert list(asked.schema["properties"]) == ["reason", "dimensions"]
    assert "the fields `reason`, `dimensions`." in asked.rubric


def test_an_answer_counts_the_same_in_opiks_evaluate() -> None:
    class Said(ChatOnly):
        def generate_chat_completion(self, *args: Any, **kwargs: Any) -> Any:
            assert "score" not in kwargs["response_format"].model_fields
            return {"content": reply(0.9, "N/A", 0.3)}

    metric = LLMJudgeMetric(JUDGE, lambda judge: Said("m"))
    ran = metric.score_in("offline", task(execution="ran").source)
    assert ran.scoring_failed
    assert "steps.execution is ran" in str(ran.reason)
    broke = metric.score_in("offline", task(execution="broke").source)
    assert broke.value == pytest.approx(0.6)
    assert broke.metadata is not None
    assert broke.metadata["dimensions"] == {"diagnosis": 0.9, "action": None, "tone": 0.3}


def test_a_question_about_pairs_asks_for_one_score() -> None:
    asking = pair_judge(JUDGE, {"output"}).asking
    assert read('{"reason": "r", "score": 2}', asking).value == 2.0


def test_where_dimensions_apply_is_part_of_the_judges_version_and_so_is_what_makes_its_score() -> None:
    plain = FILE.replace(", applies: steps.analysis", "").replace(", applies: steps.execution", "")
    versions = {built({"rules/brevity.yaml": text}).judge("brevity").version for text in (FILE, plain)}
    versions.add(built({"rules/brevity.yaml": plain.replace("score_of: dimensions, ", "")}).judge("brevity").version)
    assert len(versions) == 3
