"""A rubric of a spec as a judge: an evaluator kind whose reply is a rationale, a label and a score (Step 2.5). Pure.

The judge's model is `rubric:MODEL`. Its label is a dimension of it, so that it goes the way of every other score: the
same cache, limits and stored runs. The reason is asked for first, as of each judge: a score that comes first would be
justified and not reasoned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, Final

from evalcore.judges import kinds
from evalcore.judges.bindings import as_text
from evalcore.judges.evaluator import Evaluation, NoScore, Prompt, Task
from evalcore.judges.llm_judge import closed, prompt_of
from evalcore.judges.score_parsing import LONGEST_REASON, NOT_APPLICABLE, read_object
from evalcore.registry.files import RegistryFiles
from evalcore.registry.judge import Judge, view
from evalcore.scoring.sampling import share as share_of
from evalcore.specs.results import FieldPath
from evalcore.yaml.source_locations import Document, Parsed
from schemas.judges import (
    BaselineSource,
    Classification,
    Dimension,
    RuleFile,
    ScoreType,
    Variables,
)
from schemas.specs import Correctness, GoldenQuery, JudgeConfig, Rubric

SCHEME: Final = "rubric"
LABEL: Final = "label"
FAIL, BORDERLINE, PASS = "fail", "borderline", "pass"
LABELS: Final = (PASS, FAIL, BORDERLINE)
_AS_NUMBER: Final = {FAIL: 0.0, BORDERLINE: 0.5, PASS: 1.0}
"""A label as a part of the judge's scale."""
LOW_PART, HIGH_PART = Fraction(2, 5), Fraction(3, 5)
"""Parts of the scale: the lowest two fifths end, and the highest two begin."""
BINDINGS: Final = {"question": "input", "output": "output"}
FEW: Final = 12
"""Scores of a scale that are listed one by one."""
DUE: Final = date(2099, 12, 31)
"""A spec's threshold is its author's: nothing recalibrates it."""
_NUMBERED = re.compile(r"\s*(-?\d+(?:\.\d+)?)(?:\s*[-–]\s*(\d+(?:\.\d+)?))?(?=\s*(?:[:.)=–—-]|$))")
_VOTE = re.compile(r"_vote_\d+_of_\d+$")
_ROLE: Final = "You are an evaluation judge. You assess an agent's answer by the rubric below, and by nothing else."
_FIELDS: Final = "## What you are given\nThe field `question` is what the agent was asked, `output` is its answer."
_RETRIEVED: Final = (
    f"{_FIELDS} The field `retrieved` has all that it retrieved for it: documents, and what its tools returned."
)
_NOTHING_RETRIEVED: Final = f"{_FIELDS} It retrieved nothing for it: no document, and no result of a tool."


@dataclass(frozen=True)
class Scale:
    """The scores that a rubric has; `whole`: numbers between them are none."""

    low: float
    high: float
    whole: bool
    anchors: tuple[str, ...]


def scale_of(rubric: Rubric) -> Scale:
    """Returns the rubric's scale: from the lowest number that its anchors name to the highest; of anchors without
    numbers from 1 to their count, and from 1 to 5 without anchors."""
    anchors = rubric.scale or ()
    named = [float(part) for one in anchors if (found := _NUMBERED.match(one)) for part in found.groups() if part]
    if named and max(named) > max(min(named), 0):
        return Scale(min(named), max(named), all(one.is_integer() for one in named), anchors)
    if anchors:
        return Scale(1, len(anchors), True, tuple(f"{number}: {one}" for number, one in enumerate(anchors, 1)))
    return Scale(1, 5, True, ("1: the answer breaks the rule outright", "5: the answer meets the rule in full"))


def exact(number: float) -> Fraction:
    """Returns a number as it is written: 0.6 is three fifths, which its binary form is not."""
    return Fraction(str(number))


def reaches(rubric: Rubric, score: Fraction) -> bool:
    """Says whether a score is at the rubric's threshold or above, as a part of the highest score."""
    return score / exact(scale_of(rubric).high) >= exact(rubric.threshold)


@dataclass(frozen=True)
class RubricAnswer:
    """What a judge says of an answer by a rubric. Without a score it gave none, as `rationale` says why; `asked` is
    false where a check had failed before."""

    score: float | None
    label: str | None = None
    rationale: str = ""
    model: str = ""
    asked: bool = True


@dataclass(frozen=True)
class Placed:
    """A rubric of a query: the name of its judge, and where it stands below the query."""

    name: str
    rubric: Rubric
    field: FieldPath
    safety: bool

    def is_judged_by(self, name: str) -> bool:
        """Says whether this is the id of its judge, or of one that votes."""
        return name == self.name or _VOTE.sub("", name) == self.name


def rubrics_of(of: Correctness | None) -> Iterator[Placed]:
    """Yields the rubrics of a query's correctness. Checks of safety and hallucination are of safety: they are asked for
    also after another check has failed."""
    if of is None:
        return
    for place, rubric in enumerate(of.llm_judge or ()):
        yield Placed(f"llm_judge_{place + 1}", rubric, ("correctness", "llm_judge", place), safety=False)
    for name in ("safety_check", "hallucination_check"):
        rubric = getattr(of, name)
        if rubric is not None:
            yield Placed(name, rubric, ("correctness", name), safety=True)


def in_ensemble(query_id: str, config: JudgeConfig | None, sample: float | None = None) -> bool:
    """Says whether several models judge a query: all where the spec enables it, or the share `sample` of the queries,
    by the hash of their ids."""
    if config is None or config.ensemble is None:
        return False
    return config.ensemble.enabled if sample is None else share_of(query_id.encode()) < sample


def rubric_judges(query: GoldenQuery, config: JudgeConfig | None = None, ensemble: bool = False) -> list[Judge]:
    """Returns the judges of a query, whose ids are unique in it: one for each rubric, or with `ensemble` one for each
    model that votes. A model that is named twice is asked twice."""
    config = config or JudgeConfig()
    several = config.ensemble.models if ensemble and config.ensemble is not None else ()
    found: list[Judge] = []
    for placed in rubrics_of(query.correctness):
        votes = [f"{placed.name}_vote_{number}_of_{len(several)}" for number in range(1, len(several) + 1)]
        named = zip(votes, several, strict=True) if several else [(placed.name, config.model)]
        found += [_judge(name, model, placed) for name, model in named]
    return found


def answers_of(
    query: GoldenQuery,
    scores: Mapping[str, float | str | None],
    reasons: Mapping[str, str],
    judges: Sequence[Judge] = (),
) -> dict[str, RubricAnswer]:
    """Returns what judges say of an answer to the query, by the judges' ids, as a sample's scores and reasons have it.
    `judges` tell their models."""
    models = {judge.id: model_of(judge) for judge in judges}
    return {
        name: _answer(
            placed.rubric, scores[name], scores.get(f"{name}.{LABEL}"), reasons.get(name, ""), models.get(name, "")
        )
        for placed in rubrics_of(query.correctness)
        for name in scores
        if placed.is_judged_by(name)
    }


def model_of(judge: Judge) -> str:
    """Returns the name of the model that is asked."""
    return judge.rule.model.removeprefix(f"{SCHEME}:")


class RubricKind:
    """Scores by a rubric: `{rationale, label, score}`, each once."""

    needs_model = True

    def evaluate(self, task: Task) -> Prompt:
        """Returns the question. Raises NoScore for texts too long to be judged whole."""
        judge, source = task.judge, task.source
        retrieved = _retrieved(source)
        told = _RETRIEVED if retrieved else _NOTHING_RETRIEVED
        values = {"question": as_text(source.get("input")), **({"retrieved": retrieved} if retrieved else {})}
        values["output"] = as_text(source.get("output"))
        rubric = f"{judge.rule.prompt}\n\n{told}"
        return prompt_of(judge, model_of(judge), rubric, values, _schema(judge), task.judged_tokens)

    def read(self, reply: str, judge: Judge) -> Evaluation:
        """Reads a reply. Raises NoScore, also where label and score contradict each other."""
        said = read_object(reply, ("rationale", LABEL, "score"))
        rationale, label, score = said["rationale"], said[LABEL], said["score"]
        low, high = judge.score_range
        if not isinstance(rationale, str) or not rationale.strip():
            raise NoScore("the rationale is no text")
        if label not in LABELS:
            raise NoScore(f"the label must be one of {', '.join(LABELS)}")
        if isinstance(score, bool) or not isinstance(score, (int,) if _whole(judge) else (int, float)):
            raise NoScore(f"the score is no {'whole ' if _whole(judge) else ''}number")
        if not low <= score <= high:
            raise NoScore(f"the score is not from {low:g} to {high:g}")
        if contradicts(label, score, judge.score_range):
            raise NoScore(f"the label {label} contradicts the score {score:g}")
        storable = rationale[:LONGEST_REASON].encode(errors="replace").decode()
        return Evaluation(float(score), storable, {LABEL: low + _AS_NUMBER[label] * (high - low)})


def contradicts(label: str, score: float, scale: tuple[float, float]) -> bool:
    """Says whether a label and a score can't both be meant: `pass` in the lowest two fifths of the scale, `fail` in the
    highest two."""
    low, high = map(exact, scale)
    part = (exact(score) - low) / (high - low)
    return (label == PASS and part <= LOW_PART) or (label == FAIL and part >= HIGH_PART)


def _answer(
    rubric: Rubric, score: float | str | None, label: float | str | None, reason: str, model: str
) -> RubricAnswer:
    if NOT_APPLICABLE in (score, label):
        return RubricAnswer(None, None, reason, model, asked=False)
    if not isinstance(score, (int, float)) or not isinstance(label, (int, float)):
        return RubricAnswer(None, None, reason, model)
    scale = scale_of(rubric)
    part = (label - scale.low) / (scale.high - scale.low)
    return RubricAnswer(float(score), min(LABELS, key=lambda one: abs(_AS_NUMBER[one] - part)), reason, model)


def _judge(name: str, model: str, placed: Placed) -> Judge:
    """A judge outside every registry: no gate, sampling or calibration looks at its limits."""
    scale = scale_of(placed.rubric)
    kind = Classification.SAFETY_REFUSAL if placed.safety else Classification.QUALITY
    number = int if scale.whole else float
    rule = RuleFile(
        name=name,
        model=f"{SCHEME}:{model}",
        temperature=0,
        sampling_rate=1,
        enabled=True,
        score_name=name,
        score_type=ScoreType.FLOAT,
        score_range=[number(scale.low), number(scale.high)],
        description="A rubric of an agent's spec.",
        task_introduction=_ROLE,
        variables=Variables(offline=BINDINGS, online=BINDINGS, playground=BINDINGS),
        prompt=_prompt(placed.rubric, scale),
        classification=kind,
        floor=scale.low,
        tolerance=0,
        allow_na=False,
        dimensions={LABEL: Dimension(description="The label as a part of the scale.")},
        baseline_source=BaselineSource.PROVISIONAL_SEED,
        calibration_ref="the spec",
        recalibration_due=DUE,
    )
    files = RegistryFiles(date.min, {name: Parsed(Document(name, {}, {}), rule)})
    return view(files, name, None)


def _prompt(rubric: Rubric, scale: Scale) -> str:
    """The rubric as its judge reads it, the same for every answer."""
    number = "a whole number" if scale.whole else "a number"
    scores = [*range(int(scale.low), int(scale.high) + 1)] if scale.whole else []
    low, high = ([one for one in scores if contradicts(label, one, (scale.low, scale.high))] for label in (PASS, FAIL))
    never = (
        f"`{PASS}` never goes with {_listed(low)}, nor `{FAIL}` with {_listed(high)}."
        if 0 < len(scores) <= FEW
        else f"`{PASS}` never goes with a score in the lowest two fifths of the scale, nor `{FAIL}` in the highest two."
    )
    examples = [one.model_dump(mode="json", exclude_none=True) for one in rubric.few_shot_examples or ()]
    parts = [
        f"## Rubric\n{rubric.rule.strip()}",
        "## Scoring anchors\n" + "\n".join(f"- {one}" for one in scale.anchors),
        *(["## Examples\n" + "\n".join(json.dumps(one, ensure_ascii=False) for one in examples)] if examples else []),
        "## Your answer\n"
        "`rationale`, which comes first: one to three sentences that quote what decides.\n"
        f"`label`: `{PASS}` where the answer meets the rubric, `{FAIL}` where not, `{BORDERLINE}` between both.\n"
        f"`score`: {number} from {scale.low:g} to {scale.high:g}, the higher the better. {never}",
    ]
    return "\n\n".join(parts)


def _listed(scores: Sequence[int]) -> str:
    return " or ".join(map(str, scores))


def _schema(judge: Judge) -> dict[str, Any]:
    low, high = judge.score_range
    kind = "integer" if _whole(judge) else "number"
    return closed({
        "rationale": {"type": "string"},
        LABEL: {"type": "string", "enum": [*LABELS]},
        "score": {"type": kind, "description": f"from {low:g} to {high:g}"},
    })  # fmt: skip


def _whole(judge: Judge) -> bool:
    """Says whether the judge's scale has whole numbers alone, which its rule says by writing them so."""
    return all(isinstance(one, int) for one in judge.rule.score_range or ())


def _retrieved(source: Mapping[str, Any]) -> str:
    """What the agent had before it answered: documents, and results of its tools. Empty where there is none."""
    documents, calls = source.get("retrieval"), source.get("tool_calls")
    made = [one for one in calls if isinstance(one, Mapping)] if isinstance(calls, list) else []
    results = [{"tool": one.get("name"), "result": one["result"]} for one in made if one.get("result") is not None]
    found = {"documents": documents, "results": results}
    return as_text({name: value for name, value in found.items() if value} or None)


kinds.register(SCHEME, RubricKind())
