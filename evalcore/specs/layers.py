"""Judges a golden query's answer in three layers: correctness, path and cost (AgentCI 2.0, Step 2). Pure.

What a query asserts is decided here alone, for every run: `spec test` of a new one, `save` and `diff` of a stored one,
a rule `spec:FILE` of a trace on the stream.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from evalcore.judges.bindings import as_text
from evalcore.registry.judge import Judge, digest
from evalcore.scoring.items import NO_ANSWER, Failed
from evalcore.specs import cost, path
from evalcore.specs.correctness import assertions
from evalcore.specs.cost import judge_cost
from evalcore.specs.path import judge_path
from evalcore.specs.results import WORST_FIRST, LayerResult, Message, QueryResult, Status, worst
from evalcore.specs.rubric import Placed, RubricAnswer, answers_of, rubrics_of
from evalcore.specs.voting import Decision, decide
from evalcore.suite.checks import Checked
from evalcore.trajectory.record import Trajectory
from schemas.specs import Correctness, GoldenQuery

WELL: Final = "All correctness checks passed"
_SECTIONS: Final = {"safety_check": "safety", "hallucination_check": "hallucination"}
"""What a result calls the rubrics of safety."""
_FAILED: Final = {"safety_check": "Safety check failed", "hallucination_check": "Hallucination check failed"}


def judged(
    query: GoldenQuery,
    made: Trajectory | Failed,
    said: Mapping[str, RubricAnswer] | None = None,
    baseline: Trajectory | None = None,
    fail_on: Collection[str] = (),
) -> QueryResult:
    """Returns what the query's layers find of an answer, or of the failure in its place.

    `said` are the judges' answers (`evalcore.specs.rubric.answers_of`): what no judge said is unknown. `baseline` is
    the trajectory of the version that the query is compared with. `fail_on`, beside the query's own, names path and
    cost checks that block. An agent's failure that may pass on another
    try decides nothing; any other is the agent's own and fails.
    """
    name = query.id or digest(query.query)
    if isinstance(made, Failed) and not made.may_pass and made.why == NO_ANSWER and _wants_silence(query.correctness):
        made = Trajectory(output="")
    if isinstance(made, Failed):
        return _failed(query, name, made)
    blocking = {*fail_on, *query.fail_on}
    return QueryResult(
        name,
        query.query,
        _correctness(query.correctness, made, said or {}),
        judge_path(made, query.path, baseline, blocking),
        judge_cost(made, query.cost, baseline, blocking),
    )


def limits_of(query: GoldenQuery) -> set[str]:
    """Returns the names of the checks of path and cost that the query asserts."""
    return {*path.asserted(query.path), *cost.asserted(query.cost)}


def asserts_correctness(of: Correctness | None) -> bool:
    """Says whether anything is asserted of the answer itself."""
    return bool(assertions(of)) or any(rubrics_of(of))


def repeated(results: Sequence[QueryResult]) -> QueryResult:
    """Returns what several answers to one query come to: each layer's worst result, since a query passes if all of them
    do. Raises ValueError without any."""
    if not results:
        raise ValueError("results: must be one or more, got none")

    def layer(name: str) -> LayerResult:
        found = [one.layers[name] for one in results]
        low = min(found, key=lambda one: WORST_FIRST.index(one.status))
        if len(found) == 1 or low.status is Status.SKIP:
            return low
        passed = sum(one.status in (Status.PASS, Status.WARN) for one in found)
        return replace(low, details={**low.details, "repeats": len(found), "repeats_passed": passed})

    why = next((one.infra for one in results if one.infra), "")
    layers = {name: layer(name) for name in ("correctness", "path", "cost")}
    return QueryResult(results[0].id, results[0].query, **layers, infra=why)


@dataclass(frozen=True)
class CorrectnessTotal:
    """A query's one score for suites, `correctness`: 1 where all checks and rubrics hold, 0 where one does not, None
    where that can't be told. `judges` are the query's, on whose models it depends."""

    query: GoldenQuery
    judges: Sequence[Judge] = ()

    @property
    def version(self) -> str:
        of = self.query.correctness
        stated = of.model_dump(mode="json", exclude_none=True) if of is not None else {}
        return digest([stated, *(judge.version for judge in self.judges)])

    def total(self, scores: Mapping[str, float | str | None], reasons: Mapping[str, str]) -> Checked:
        """Returns the score of a sample that has these scores, with their reasons. Not applicable is no score here."""
        of = self.query.correctness
        found = [_checked(name, scores.get(name), reasons.get(name, "")) for name in assertions(of)]
        said = answers_of(self.query, scores, reasons)
        found += [one for placed in rubrics_of(of) for one in _rubric(placed, said)[1]]
        wrong = [one for one in found if one is not None]
        low = worst(one.status for one in wrong)
        score = {Status.FAIL: 0.0, Status.INFRA: None}.get(low, 1.0)
        return Checked(score, "; ".join(one.words for one in wrong if one.status is low))


def _checked(name: str, score: float | str | None, reason: str) -> Message | None:
    if score == 1.0:
        return None
    status = Status.FAIL if score == 0.0 else Status.INFRA
    return Message(reason or f"{name} was not checked", ("correctness", name), status)


def _wants_silence(of: Correctness | None) -> bool:
    """Says whether an empty answer is what the query asserts."""
    return of is not None and of.exact_match is not None and not of.exact_match.strip()


def _failed(query: GoldenQuery, name: str, made: Failed) -> QueryResult:
    """What an agent's failure comes to: a correctness that fails, also where none is asserted, or nothing."""
    skipped = LayerResult(Status.SKIP)
    unknown = LayerResult(Status.INFRA, {}, (Message(made.why, (), Status.INFRA),))
    crashed = LayerResult(Status.FAIL, {}, (Message(f"The agent failed: {made.why}", ("correctness",), Status.FAIL),))
    return QueryResult(
        name,
        query.query,
        (unknown if asserts_correctness(query.correctness) else skipped) if made.may_pass else crashed,
        unknown if path.asserted(query.path) else skipped,
        unknown if cost.asserted(query.cost) else skipped,
        made.why if made.may_pass else "",
    )


def _correctness(of: Correctness | None, made: Trajectory, said: Mapping[str, RubricAnswer]) -> LayerResult:
    checks, rubrics = assertions(of), list(rubrics_of(of))
    if not checks and not rubrics:
        return LayerResult(Status.SKIP)
    if made.output is None:
        return LayerResult(Status.INFRA, {}, (Message("the answer has no `output`", ("correctness",), Status.INFRA),))
    found = {name: check.find(made.output) for name, check in checks.items()}
    details: dict[str, Any] = {name: dict(one.details) for name, one in found.items()}
    messages = [message for one in found.values() for message in one.messages]
    failed = bool(messages)
    for placed in rubrics:
        decision, wrong = _rubric(placed, said, skipped=failed and not placed.safety)
        if placed.name in _SECTIONS:
            details[_SECTIONS[placed.name]] = dict(decision.details)
        else:
            details.setdefault("llm_judge", []).append(dict(decision.details))
        messages += wrong
    if not messages:
        return LayerResult(Status.PASS, details, (Message(WELL, (), Status.PASS),))
    return LayerResult(worst(one.status for one in messages), details, tuple(messages))


def _rubric(
    placed: Placed, said: Mapping[str, RubricAnswer], *, skipped: bool = False
) -> tuple[Decision, list[Message]]:
    """What a rubric comes to. `skipped`: another check has failed, so that no judge had to be asked."""
    votes = {name: answer for name, answer in said.items() if placed.is_judged_by(name)}
    decision = decide(placed.rubric, votes)
    if decision.passed or (skipped and decision.passed is None):
        return decision, []
    if decision.passed is None:
        return decision, [Message(f"Not judged: {placed.rubric.rule} ({decision.why})", placed.field, Status.INFRA)]
    title = _FAILED.get(placed.name, "Judge failed")
    return decision, [Message(f"{title}: {placed.rubric.rule}{_because(decision)}", placed.field, Status.FAIL)]


def _because(decision: Decision) -> str:
    label, score, why = (decision.details.get(name) for name in ("label", "score", "rationale"))
    return f" (label {label or 'without a majority'}, score {score:g}: {as_text(why)})"
