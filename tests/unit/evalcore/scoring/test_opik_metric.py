"""A judge as an Opik metric (PC5 §5.4, AC-9, §9.5): made without a model, scored with a fake one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from opik.evaluation.metrics import GEval, arguments_helpers, base_metric
from opik.evaluation.models import OpikBaseModel

from evalcore.judges.bindings import CONTEXTS
from evalcore.registry.registry import Judge
from evalcore.scoring.opik_metric import LLMJudgeMetric, answer_format
from schemas.judges import ScoreType
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.scoring.opik_models import ChatOnly

REGISTRY = built(
    {
        "rules/helpfulness.yaml": """
prompt: "{{input}} || {{output}} || {{expected_output}}"
variables: {offline: {expected_output: expected_output}, playground: {expected_output: metadata.item.expected_output}}
""",
        "rules/brevity.yaml": "{dimensions: {tone-of-voice: {description: T}, facts: {description: F}}}",
    }
)
ITEM = {"input": "how?", "output": "so!", "expected_output": "thus"}
SOURCES: Mapping[Any, Mapping[str, Any]] = {
    "offline": ITEM,
    "online": {
        "input": {"messages": [{"content": "hi"}, {"content": "how?"}]},
        "output": {"messages": [{"content": "so!"}]},
    },
    "playground": {
        "metadata": {"item": {"input": "how?", "expected_output": "thus"}},
        "output": {"output": "so!"},
    },
}


class Model(ChatOnly):
    """Gives what it is told to give, and keeps what it was asked; an exception is raised."""

    def __init__(self, *answers: Any) -> None:
        super().__init__("fake")
        self.answers, self.asked = list(answers), list[dict[str, Any]]()

    def generate_chat_completion(self, messages: Any, response_format: Any = None, **more: Any) -> Any:
        self.asked.append({"messages": messages, "response_format": response_format, **more})
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return {"role": "assistant", "content": answer}

    async def agenerate_chat_completion(self, messages: Any, response_format: Any = None, **more: Any) -> Any:
        await asyncio.sleep(0)
        return self.generate_chat_completion(messages, response_format, **more)


def metric(name: str, *answers: Any, vertical: str | None = None) -> tuple[LLMJudgeMetric, Model]:
    model = Model(*answers)
    return LLMJudgeMetric(REGISTRY.judge(name, vertical), lambda _: model), model


def answer(score: Any, **more: Any) -> str:
    return json.dumps({"score": score, "reason": "why", **more})


def filled(*values: str) -> dict[str, str]:
    """The turn's texts."""
    return dict(zip(("input", "output", "expected_output"), values, strict=True))


def shown(messages: Any) -> Any:
    """The turn that the user's message has."""
    return json.loads(messages[1]["content"].splitlines()[1])


def refuse(judge: Judge) -> OpikBaseModel:
    raise AssertionError(f"a model was made for {judge.id}")


def test_it_is_an_opik_metric_and_making_one_makes_no_model() -> None:
    """PC5 §2, §5.4."""
    made = LLMJudgeMetric(REGISTRY.judge("helpfulness"), refuse)
    assert isinstance(made, GEval)
    assert (made.id, made.judge_id, made.name, made.vertical) == ("helpfulness", "helpfulness", "helpfulness", None)
    assert made.rule is made.judge.rule
    assert made.threshold() == made.threshold("pre_full") == 4
    with pytest.raises(ValueError, match="pre_prod"):
        made.threshold("pre_prod")


def test_everything_opiks_own_class_sets_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own __init__ is not called; with a release of opik that needs more, this fails."""
    monkeypatch.setattr(base_metric, "_track_metric_creation", lambda _: None)
    theirs = GEval(task_introduction="t", evaluation_criteria="e", model=Model(), name="n", track=False)
    made, model = metric("helpfulness")
    assert not [name for name in vars(theirs) if not hasattr(made, name)]
    assert (made.task_introduction, made.evaluation_criteria) == (made.rule.task_introduction, made.rule.prompt)
    assert made._model is model


async def test_opiks_own_methods_work_on_it() -> None:
    made, model = metric("helpfulness", "think", '{"score": 7, "reason": "r"}', '{"score": 5, "reason": "r"}')
    assert GEval.score(made, output="so!").value == 0.7
    assert (await GEval.ascore(made, output="so!")).value == 0.5
    assert len(model.asked) == 3


def test_opik_finds_no_argument_missing() -> None:
    made, _ = metric("helpfulness")
    arguments_helpers.raise_if_score_arguments_are_missing(made.score, made.name, dict(ITEM), None)


@pytest.mark.parametrize(
    ("name", "score", "value"), [("helpfulness", 4, 4.0), ("refusal", 0.95, 0.95), ("honesty", True, 1.0)]
)
async def test_it_scores_on_the_judges_own_scale(name: str, score: Any, value: float) -> None:
    made, model = metric(name, answer(score), answer(score))
    for found in (made.score(**ITEM), await made.ascore(**ITEM)):
        assert (found.name, found.value, found.reason, found.scoring_failed) == (name, value, "why", False)
        assert found.metadata == {"judge_id": name, "judge_version": made.judge.version}
    assert model.asked[0] == model.asked[1]


async def test_it_asks_once_with_the_rules_own_words() -> None:
    made, model = metric("helpfulness", answer(4))
    made.score(**ITEM)
    (asked,) = model.asked
    system, user = asked["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert system["content"].startswith("You judge answers.\n\nthe field `input` || the field `output`")
    assert shown(asked["messages"]) == filled("how?", "so!", "thus")
    assert user["content"].splitlines()[0] in system["content"], "the delimiter, with its nonce"
    assert asked["messages"] == LLMJudgeMetric(made.judge).messages("offline", ITEM), "the same for the same question"


@pytest.mark.parametrize("vertical", [None, "shop"])
def test_offline_online_and_playground_are_the_same_judge(vertical: str | None) -> None:
    """PC5 AC-9: the same rubric text and threshold; only the bindings differ."""
    made, model = metric("helpfulness", *[answer(4)] * 3, vertical=vertical)
    for context in CONTEXTS:
        assert made.bind(context, SOURCES[context])["input"] == "how?"
        assert made.score_in(context, SOURCES[context]).value == 4
    sent = [asked["messages"] for asked in model.asked]
    rubrics = [messages[0]["content"].rpartition("\n")[0] for messages in sent]
    assert rubrics == [rubrics[0]] * 3
    assert [shown(messages) for messages in sent] == [
        filled("how?", "so!", "thus"),
        filled("how?", "so!", ""),  # production has no reference answer
        filled("how?", "so!", "thus"),
    ]
    assert [asked["response_format"] for asked in model.asked] == [model.asked[0]["response_format"]] * 3
    assert made.threshold("pre_full") == (4.5 if vertical else 4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("a 5, I would say", "no JSON object"),
        (answer(6), "score 6 is not from 1 to 5"),
        (answer(True), "no whole number"),
        (None, "no JSON object"),
        (RuntimeError("model is down"), "RuntimeError: model is down"),
        (TimeoutError(), "TimeoutError"),
    ],
)
async def test_no_score_is_no_score_and_raises_nothing(given: Any, said: str) -> None:
    """PC5 §9.5: a gate has to see that there was no answer; zero is no score either."""
    made, _ = metric("helpfulness", given, given)
    for found in (made.score(**ITEM), await made.ascore(**ITEM)):
        assert found.scoring_failed
        assert found.metadata is not None
        assert found.metadata["outcome"] == "unscored"
        assert said in (found.reason or "")


def test_a_model_that_can_not_be_made_is_no_score() -> None:
    def no_key(_: Judge) -> OpikBaseModel:
        raise ValueError("no key for gpt-5-mini")

    found = LLMJudgeMetric(REGISTRY.judge("helpfulness"), no_key).score(**ITEM)
    assert found.scoring_failed
    assert found.reason == "ValueError: no key for gpt-5-mini"


async def test_an_item_that_lacks_what_a_judge_is_shown_is_not_shown_to_a_model() -> None:
    made, model = metric("helpfulness", answer(5))
    found = made.score(output="so!", expected_output="thus")
    assert found.scoring_failed
    assert "input: the item has no 'input'" in (found.reason or "")
    assert made.score_in("production", ITEM).reason == (
        "ValueError: no context 'production'; there are offline, online, playground"
    )
    assert model.asked == []


def test_an_item_without_a_reference_is_scored_as_a_gate_would_with_nothing_there() -> None:
    made, model = metric("helpfulness", answer(5))
    assert made.score(input="how?", output="so!").value == 5.0
    assert shown(model.asked[0]["messages"]) == filled("how?", "so!", "")


def test_not_applicable_is_told_from_unscored() -> None:
    made, _ = metric("helpfulness", answer("N/A"))
    found = made.score(**ITEM)
    assert found.scoring_failed
    assert (found.metadata or {})["outcome"] == "not_applicable"
    assert found.reason == "why"


def test_dimensions_are_scores_of_their_own() -> None:
    made, model = metric("brevity", answer(4, dimensions={"tone-of-voice": 2, "facts": "N/A"}), answer(4))
    found = made.score(**ITEM)
    assert (found.value, (found.metadata or {})["dimensions"]) == (4.0, {"tone_of_voice": 2.0, "facts": None})
    wanted = model.asked[0]["response_format"].model_json_schema()
    assert set(wanted["required"]) == {"score", "reason", "dimensions"}
    (inner,) = wanted["$defs"].values()
    assert set(inner["required"]) == {"tone-of-voice", "facts"}, "as the rubric calls them"
    assert made.score(**ITEM).scoring_failed, "without its dimensions an answer is none"


async def test_a_cancelled_judgement_is_cancelled() -> None:
    made, _ = metric("helpfulness", asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        await made.ascore(**ITEM)


@pytest.mark.parametrize(("score_type", "kind"), [("INTEGER", "integer"), ("FLOAT", "number"), ("BOOLEAN", "boolean")])
def test_a_model_is_told_the_type_of_the_score(score_type: str, kind: str) -> None:
    schema = answer_format(ScoreType(score_type), ()).model_json_schema()
    assert schema["properties"]["score"]["anyOf"] == [{"type": kind}, {"type": "string"}]
    assert schema["required"] == ["reason", "score"]


def test_its_model_is_made_once() -> None:
    made: list[Judge] = []

    def make(judge: Judge) -> OpikBaseModel:
        made.append(judge)
        return Model(answer(4), answer(5))

    judge = LLMJudgeMetric(REGISTRY.judge("helpfulness"), make)
    assert [judge.score(**ITEM).value, judge.score(**ITEM).value] == [4, 5]
    assert made == [judge.judge]
