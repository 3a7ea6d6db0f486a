"""Tells what a run of a suite will ask and cost, before it asks anybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from evalcore.judges.evaluator import Prompt
from evalcore.judges.kinds import needs_model
from evalcore.registry.judge import Judge
from evalcore.scoring.assignments import assign, task_of, unscorable
from evalcore.scoring.cache import ScoreCache, kept
from evalcore.scoring.runner import Scorer, evaluate
from rampgate.suite.generation import Generated
from rampgate.suite.runs.stored import StoredRun
from rampgate.suite.scoring import Rubric
from rampgate.suite.suite_files import SuiteCase

LOOKED_AT: Final = 20
"""The last runs whose calls say what a call costs."""


async def planned(
    answers: Sequence[tuple[SuiteCase, Generated | None]],
    rubric: Rubric,
    scorer: Scorer | None,
    scores: ScoreCache,
    before: Sequence[StoredRun],
    more: Mapping[str, Judge] | None = None,
    coming: int = 0,
) -> dict[str, Any]:
    """Returns how many answers and judgements are kept, how many will be asked for, and what that costs by the suite's
    last runs; None where they don't tell. `more` are questions beside those about single answers, by their keys, and
    of `coming` ones the key is not known yet. A judge that is asked again about what fails may take some calls more."""
    missing = [case for case, one in answers if one is None]
    asked = [judge for case in missing for judge in (*rubric.judges, *case.judges) if scorer and needs_model(judge)]
    questions = (_questions(answers, rubric, scorer) if scorer is not None else {}) | dict(more or {})
    held = await scores.get_many(list(questions))
    at_hand = sum(kept(value, judge) is not None for value, judge in zip(held, questions.values(), strict=True))
    calls = len(questions) - at_hand + len(asked) + coming
    last = [run for run in before if run.calls or run.asked][-LOOKED_AT:]
    return {
        "answers": {"to_ask": len(missing), "kept": len(answers) - len(missing)},
        "judge_calls": {"to_ask": calls, "kept": at_hand},
        "tokens": _at(calls, sum(run.tokens for run in last), sum(run.calls for run in last)),
        "cost_usd": _cost(calls, len(missing), last),
    }


def _questions(
    answers: Sequence[tuple[SuiteCase, Generated | None]], rubric: Rubric, scorer: Scorer
) -> dict[str, Judge]:
    """Each question about a kept answer, by the key of its score: equal answers are judged once."""
    found: dict[str, Judge] = {}
    for case, one in answers:
        if one is None:
            continue
        item = rubric.item(case.row, one.answer)
        for judge, _ in assign([*rubric.judges, *case.judges], [item]):
            if unscorable(judge, item):
                continue
            made = evaluate(replace(task_of(judge, item), judged_tokens=scorer.judged_tokens))
            if isinstance(made, Prompt):
                found |= {scorer.key_of(judge, window): judge for window in made.windows}
    return found


def _at(many: int, spent: float, on: int) -> int | None:
    if not many:
        return 0
    return round(many * spent / on) if on else None


def _cost(calls: int, answers: int, last: Sequence[StoredRun]) -> float | None:
    """What calls and answers cost; of the candidate what it told, which may be nothing."""
    priced, asked = sum(run.priced for run in last), sum(run.asked for run in last)
    if calls and not priced:
        return None
    judges = calls * sum(run.dollars for run in last) / priced if calls else 0.0
    return round(judges + (answers * sum(run.answer_dollars for run in last) / asked if asked else 0.0), 6)
