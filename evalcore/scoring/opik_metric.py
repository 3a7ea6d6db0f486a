"""A judge as an Opik metric (PC5 §5.4). An edge: it imports opik, and its model is called when it scores.

Nothing here runs when a registry is loaded: lookups that return metrics import this module on first use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import pydantic
from opik.evaluation.metrics import GEval
from opik.evaluation.metrics.score_result import ScoreResult
from opik.evaluation.models import OpikBaseModel, models_factory

from evalcore.judges.bindings import CONTEXTS, Context, Unbound, bind
from evalcore.judges.evaluator import Evaluation, NoScore, Prompt, Task
from evalcore.judges.kinds import evaluator_of
from evalcore.judges.llm_judge import render
from evalcore.registry.registry import Judge
from evalcore.scoring.answers import Scored, Unscored, as_it_stands, judgement, settled, worst
from evalcore.scoring.assignments import task_of, unscorable
from evalcore.scoring.items import Item, dataset_item, trace_item
from evalcore.scoring.nonce_key import nonce_key
from schemas.judges import Milestone, RuleFile, Score, ScoreType

Models = Callable[[Judge], OpikBaseModel]


class _Reasoned(pydantic.BaseModel):
    reason: str


class _IntegerAnswer(_Reasoned):
    score: int | str


class _FloatAnswer(_Reasoned):
    score: float | str


class _BooleanAnswer(_Reasoned):
    score: bool | str


_FORMATS: Mapping[ScoreType, type[pydantic.BaseModel]] = {
    ScoreType.INTEGER: _IntegerAnswer, ScoreType.FLOAT: _FloatAnswer, ScoreType.BOOLEAN: _BooleanAnswer
}  # fmt: skip


@lru_cache(maxsize=256)
def answer_format(score_type: ScoreType, dimensions: tuple[str, ...], scored: bool = True) -> type[pydantic.BaseModel]:
    """Returns the form of an answer for providers that enforce a schema. `evalcore.judges.score_parsing.read`, which
    reads the answer, is stricter."""
    plain = _FORMATS[score_type]
    if not dimensions:
        return plain
    kind: Any = plain.model_fields["score"].annotation
    scores: Any = {f"of_{number}": (kind, pydantic.Field(alias=name)) for number, name in enumerate(dimensions)}
    inner: Any = pydantic.create_model("_Dimensions", **scores)
    base = plain if scored else _Reasoned
    return pydantic.create_model("_Answer", __base__=base, dimensions=(inner, ...))


def litellm_model(judge: Judge) -> OpikBaseModel:
    """Returns the model that GEval itself would use. Imports litellm; keys and address come from where litellm
    looks."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else importing litellm fetches prices from GitHub
    return models_factory.get(judge.rule.model, track=False, temperature=float(judge.rule.temperature))


class LLMJudgeMetric(GEval):
    """A judge, ready to score. Making one opens no connection and needs no key: its model is made when it first scores.

    It scores with the rule's own prompt, in one call, and not with GEval's chain of thought, whose scale is fixed. So
    `value` is on the judge's scale (1.0 and 0.0 for BOOLEAN); `metadata["dimensions"]` has the scores of a judge's
    dimensions, None where one is not applicable. Without a score `scoring_failed` is set, `reason` says why and
    `metadata["outcome"]` is `unscored` or `not_applicable`. Retries, the cache and limits on calls belong to gates.
    """

    def __init__(
        self,
        judge: Judge,
        models: Models | None = None,
        schema: Mapping[str, Any] | None = None,
        key: bytes | None = None,
    ) -> None:
        """`schema` is the manifest's: the fields that a dataset item may lack are null, as at a gate. `key` makes the
        nonces around turns; without one it is the environment's, else this process's own."""
        self.judge = judge
        self._models = models or litellm_model
        self._schema = schema or {}
        self._key = key
        self._made: OpikBaseModel | None = None
        # Not GEval's own __init__: it imports litellm to make the model at once, and reports "metric_created" to Opik's
        # makers from a thread. A test holds that nothing it sets is missing here.
        self.name, self.track, self.project_name = judge.score_name, False, None
        self.task_introduction, self.evaluation_criteria = judge.rule.task_introduction, judge.rule.prompt
        self._seed, self._reasoning_effort, self._log_probs_supported = None, None, False

    @property
    def id(self) -> str:
        return self.judge.id

    @property
    def judge_id(self) -> str:
        return self.judge.id

    @property
    def vertical(self) -> str | None:
        return self.judge.vertical

    @property
    def rule(self) -> RuleFile:
        """The central rule file; `judge` has what a vertical tunes."""
        return self.judge.rule

    def threshold(self, milestone: str | None = None) -> Score:
        return self.judge.default_threshold if milestone is None else self.judge.thresholds[Milestone(milestone)]

    def bind(self, context: Context, source: Mapping[str, Any]) -> dict[str, str]:
        """Returns the prompt's variables, read from a dataset item or trace (PC5 AC-9). Raises
        evalcore.judges.bindings.Unbound."""
        return bind(self.judge, context, source)

    def messages(self, context: Context, source: Mapping[str, Any]) -> list[Mapping[str, str]]:
        """Returns the messages to the model, of a turn in windows those of the first one: the same rubric in every
        context, the turn's texts as one JSON object that they can't leave. Raises Unbound."""
        return self._sealed(render(self.judge, context, source))

    def score(self, output: Any = None, **fields: Any) -> ScoreResult:
        """Score a dataset item's fields and the task's output, as Opik's `evaluate` hands them over, offline."""
        return self.score_in("offline", {"output": output, **fields})

    async def ascore(self, output: Any = None, **fields: Any) -> ScoreResult:
        """As `score`."""
        return await self.ascore_in("offline", {"output": output, **fields})

    def score_in(self, context: Context, source: Mapping[str, Any]) -> ScoreResult:
        """Score a dataset item, a trace, or Opik's playground item. Never raises."""
        try:
            task = self._task(context, source)
            found = evaluator_of(self.judge).evaluate(task)
            if isinstance(found, Prompt):
                found = worst(self.judge, [self._answered(self._request(window)) for window in found.windows])
            return self._result(task, found)
        except Exception as error:
            return self._failure(error)

    async def ascore_in(self, context: Context, source: Mapping[str, Any]) -> ScoreResult:
        """As `score_in`."""
        try:
            task = self._task(context, source)
            found = evaluator_of(self.judge).evaluate(task)
            if isinstance(found, Prompt):
                found = worst(self.judge, [await self._aanswered(self._request(window)) for window in found.windows])
            return self._result(task, found)
        except Exception as error:
            return self._failure(error)

    def _task(self, context: Context, source: Mapping[str, Any]) -> Task:
        if context not in CONTEXTS:
            raise ValueError(f"no context {context!r}; there are {', '.join(CONTEXTS)}")
        if context == "playground":
            item = Item("", context, source)
        else:
            item = dataset_item(source, self._schema) if context == "offline" else trace_item(source)
        if why := unscorable(self.judge, item):
            raise NoScore(why)
        return task_of(self.judge, item)

    def _answered(self, request: dict[str, Any]) -> Evaluation:
        """Asks as often as a gate does: a failing answer of a judge with `confirmation` more than once."""
        said = [self._read(self._model.generate_chat_completion(**request))]
        while (found := settled(self.judge, said)) is None:
            try:
                said.append(self._read(self._model.generate_chat_completion(**request)))
            except Exception as error:
                return as_it_stands(said, type(error).__name__)
        return found

    async def _aanswered(self, request: dict[str, Any]) -> Evaluation:
        """As `_answered`."""
        said = [self._read(await self._model.agenerate_chat_completion(**request))]
        while (found := settled(self.judge, said)) is None:
            try:
                said.append(self._read(await self._model.agenerate_chat_completion(**request)))
            except Exception as error:
                return as_it_stands(said, type(error).__name__)
        return found

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        parts = tuple(self.rule.dimensions or ())
        answer = answer_format(self.judge.score_type, parts, self.rule.score_of is None)
        return {"messages": self._sealed(prompt), "response_format": answer}

    def _sealed(self, prompt: Prompt) -> list[Mapping[str, str]]:
        key = nonce_key() if self._key is None else self._key
        return list(prompt.sealed(key, self.judge).messages)

    def _read(self, reply: Mapping[str, Any]) -> Evaluation:
        return evaluator_of(self.judge).read(str(reply.get("content", "")), self.judge)

    def _result(self, task: Task, found: Evaluation) -> ScoreResult:
        about: dict[str, Any] = {"judge_id": self.judge.id, "judge_version": self.judge.version}
        made = judgement(task, found)
        if made.dimensions:
            about["dimensions"] = {name: getattr(part, "value", None) for name, part in made.dimensions.items()}
        answer = made.answer
        if isinstance(answer, Scored):
            return ScoreResult(self.name, answer.value, reason=found.reason, metadata=about)
        if isinstance(answer, Unscored):
            raise NoScore(answer.reason)
        about["outcome"] = "not_applicable"
        return ScoreResult(self.name, 0.0, reason=found.reason, metadata=about, scoring_failed=True)

    def _failure(self, error: Exception) -> ScoreResult:
        about = {"judge_id": self.judge.id, "judge_version": self.judge.version, "outcome": "unscored"}
        reason = str(error) if isinstance(error, (Unbound, NoScore)) else f"{type(error).__name__}: {error}"
        return ScoreResult(self.name, 0.0, reason=reason, metadata=about, scoring_failed=True)

    @property
    def _model(self) -> OpikBaseModel:  # type: ignore[override]  # GEval has an attribute; made when first asked for
        if self._made is None:
            self._made = self._models(self.judge)
        return self._made
