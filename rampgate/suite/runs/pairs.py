"""Has judges say of each sample which side's answer is better, the candidate's or the baseline's, in both orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalcore.judges.evaluator import Prompt, Task
from evalcore.registry.judge import Judge
from evalcore.scoring.assignments import without_model
from evalcore.scoring.calls import Spend
from evalcore.scoring.items import Failed, Item
from evalcore.scoring.runner import Scorer, evaluate
from evalcore.suite.pairwise.outcome import Outcome, outcome, tally, without_asking
from evalcore.suite.pairwise.question import PairJudge, questions
from rampgate.input_files import lines
from rampgate.suite.generation import KeptValues, Left
from rampgate.suite.runs.judged_again import stored_traces, trace_of_row
from rampgate.suite.scoring import Place, Rubric, ScoredSample
from rampgate.suite.suite_files import SuiteCase


@dataclass(frozen=True)
class StoredAnswer:
    """The baseline's answer to a sample as it is stored; None where its line has neither output nor error. `whole`: the
    store has what else judges may read of it. `question` is the hash of what it was asked, None where no one says."""

    answer: Mapping[str, Any] | Failed | None
    question: str | None
    whole: bool

    def item(self, case: SuiteCase, judge: PairJudge, rubric: Rubric) -> Item | None:
        """What the judge reads; None where not all of it is known."""
        known = self.answer is not None and (self.whole or isinstance(self.answer, Failed) or not judge.reads_more)
        return rubric.item(case.row, self.answer) if known and self.answer is not None else None


@dataclass(frozen=True)
class JudgePairs:
    """All pairs of one judge: what they came to by their places, and how many calls that took."""

    outcomes: Mapping[Place, Outcome]
    calls: int

    def told(self) -> dict[str, Any]:
        """The judge's part of the run's document."""
        found = tally(self.outcomes.values())
        return {
            "wins": found.wins,
            "ties": found.ties,
            "losses": found.losses,
            "unanswered": found.unanswered,
            "position_bias": found.position_bias,
            "calls": self.calls,
        }

    @property
    def left(self) -> int:
        return tally(self.outcomes.values()).left


async def stored_answers(path: Path, traces: KeptValues, judges: Sequence[PairJudge]) -> dict[Place, StoredAnswer]:
    """Returns the baseline's answers by their places, with as much of them as these judges read. Raises BadFile."""
    rows = [row for _, row in lines(path)]
    held = await stored_traces(rows, traces) if any(judge.reads_more for judge in judges) else {}
    found = {}
    for row in rows:
        answer: Mapping[str, Any] | Failed | None = None
        if row.get("error") is not None:
            answer = Failed(str(row["error"]))
        elif row.get("output") is not None:
            answer = held.get(trace_of_row(row), {}) | {"output": row["output"]}
        place = str(row["case_id"]), row["sample"]
        found[place] = StoredAnswer(answer, row.get("question_hash"), trace_of_row(row) in held)
    return found


async def pairs_judged(
    judge: PairJudge,
    samples: Sequence[ScoredSample],
    stored: Mapping[Place, StoredAnswer],
    rubric: Rubric,
    scorer: Scorer | None,
    spend: Spend,
) -> JudgePairs:
    """Returns what the judge says of the samples that the baseline has too, and that the candidate was asked."""
    before, outcomes, asked = spend.calls, dict[Place, Outcome](), dict[Place, list[Task]]()
    for sample in samples:
        place = sample.case.id, sample.generated.sample
        if isinstance(sample.generated.answer, Left) or (one := _same_case(stored, place, sample.case)) is None:
            continue
        candidate = rubric.item(sample.case.row, sample.generated.answer)
        baseline = one.item(sample.case, judge, rubric)
        if baseline is None:
            outcomes[place] = Outcome()
            continue
        known = without_asking(judge, candidate, baseline)
        if known is not None:
            outcomes[place] = known
        else:
            outcomes[place] = Outcome()  # its place among the others; what the judge says follows
            asked[place] = questions(judge, f"{place[0]}#{place[1]}", _bare(sample.case, rubric), candidate, baseline)
    tasks = [task for both in asked.values() for task in both]
    said = await scorer.score("suite pairs", tasks, spend=spend) if scorer is not None else map(without_model, tasks)
    answers = iter(said)
    for place in asked:
        outcomes[place] = outcome(next(answers), next(answers))
    return JudgePairs(outcomes, spend.calls - before)


def pairs_planned(
    judge: PairJudge,
    answers: Sequence[tuple[SuiteCase, int, Mapping[str, Any] | Failed | None]],
    stored: Mapping[Place, StoredAnswer],
    rubric: Rubric,
    scorer: Scorer,
) -> tuple[dict[str, Judge], int]:
    """Returns the questions that are known by their keys, equal ones once, and how many more come with answers that are
    not there yet: those are None."""
    known, coming = dict[str, Judge](), 0
    for case, sample, answer in answers:
        one = _same_case(stored, (case.id, sample), case)
        baseline = one.item(case, judge, rubric) if one is not None else None
        if baseline is None:
            continue
        if answer is None:
            coming += 0 if baseline.missing else 2
            continue
        candidate = rubric.item(case.row, answer)
        if without_asking(judge, candidate, baseline) is not None:
            continue
        for task in questions(judge, f"{case.id}#{sample}", _bare(case, rubric), candidate, baseline):
            made = evaluate(replace(task, judged_tokens=scorer.judged_tokens))
            if isinstance(made, Prompt):
                known[scorer.key_of(judge.asking, made)] = judge.asking
    return known, coming


def _same_case(stored: Mapping[Place, StoredAnswer], place: Place, case: SuiteCase) -> StoredAnswer | None:
    """The baseline's answer to the same case; one that asked or expected something else is none."""
    found = stored.get(place)
    return found if found is not None and found.question in (None, case.question) else None


def _bare(case: SuiteCase, rubric: Rubric) -> Mapping[str, Any]:
    """The case's item without any answer."""
    return rubric.item(case.row, Failed("")).source
