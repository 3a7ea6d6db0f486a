"""Reads what the loop goes by: the scores of an eval run, its items and outputs, the Agent Definition.

What can't be right is refused with file, line, field and remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct

from evalcore.gates.golden import CandidateAnswer
from evalcore.judges.score_parsing import NOT_APPLICABLE
from evalcore.optimisation.definition import AgentDefinition, BadDefinition, read_definition
from evalcore.registry.registry import Judge, Registry, UnknownJudge
from evalcore.scoring.answers import Answer, NotApplicable, Scored, Unscored
from evalcore.scoring.items import Failed, category_of, identity
from rampgate.input_files import BadFile, content, read, twice, wrong
from schemas.judges import ScoreType

UNSCORED = Unscored("the judge gave no score")


class JudgeScore(Struct, gc=False):
    """A line of results, also as `rampgate.judge-scores` has it, where an item is a trace."""

    judge_id: Annotated[
        str, Meta(min_length=1, description="a judge", extra={"remedy": "a line is {judge_id, item_id, score}"})
    ]
    item_id: str | int | None = None
    trace_id: str | int | None = None
    score: Any = UNSET
    dimension: Any = None
    vertical: Any = None
    agent_id: Any = None
    agent_version: Any = None
    judge_version: Any = None
    unscored: Any = None
    na: Any = None


def read_agent(path: Path, vertical: str) -> AgentDefinition:
    """The Agent Definition of the vertical. Raises BadFile."""
    try:
        found = read_definition(str(path), content(path))
    except BadDefinition as error:
        raise BadFile(str(error)) from error
    if found.vertical is not None and found.vertical != vertical:
        raise BadFile(f"{path}: vertical: the agent is of {found.vertical[:80]!r}, not of {vertical!r}")
    return found


def read_results(
    path: Path, registry: Registry, vertical: str, agent: AgentDefinition, rows: Sequence[Mapping[str, Any]]
) -> dict[tuple[str, str], Answer]:
    """What each judge said of each item of the run, by both ids: lines `{judge_id, item_id, score}`, also as
    `rampgate.judge-scores` has them. Lines about a judge's dimension are passed over. Raises BadFile."""
    known = {identity(row, number) for number, row in enumerate(rows)}
    declared = registry.dataset(vertical)
    prefix = f"{declared.name} v{declared.version}: "
    found: dict[tuple[str, str], Answer] = {}
    at: dict[tuple[str, str], int] = {}
    ours = {
        "vertical": vertical, "agent_id": agent.agent_id, "agent_version": agent.agent_version,
    }  # fmt: skip
    for number, line in read(path, JudgeScore):
        if line.dimension is not None or "." in line.judge_id:
            continue
        try:
            judge = registry.judge(line.judge_id, vertical)
        except UnknownJudge as error:
            raise BadFile(f"{path}:{number}: judge_id: {error}") from error
        for field, own in {**ours, "judge_version": judge.version}.items():
            if (told := getattr(line, field)) is not None and own is not None and str(told) != own:
                raise wrong(path, number, field, repr(own), told, "give the results of this one")
        name = next((one for one in (line.item_id, line.trace_id) if one not in (None, "")), None)
        if name is None:
            raise wrong(path, number, "item_id", "the id of an item, a text or a whole number", line.item_id)
        item = str(name).removeprefix(prefix)
        if item not in known:
            raise wrong(path, number, "item_id", "an item of the dataset", item, "give the one that was judged")
        key = (judge.id, item)
        if (before := at.setdefault(key, number)) != number:
            raise twice(path, number, "item_id", f"this judge's score of {item[:80]!r}", before)
        found[key] = _answer(path, number, line, judge)
    if not found:
        raise BadFile(f"{path}: has no scores; a line is {{judge_id, item_id, score}}")
    return found


def require_categories(registry: Registry, rows: Sequence[Mapping[str, Any]], source: str) -> None:
    """Raises BadFile for an item whose category the manifest does not have."""
    for number, row in enumerate(rows):
        if (category := category_of(row)) not in registry.category_files:
            item = identity(row, number)
            raise BadFile(f"{source}: item {item[:80]!r}: metadata.category: the manifest has no {category[:80]!r}")


def output_of(row: Mapping[str, Any], item: str, outputs: Mapping[str, CandidateAnswer]) -> Any:
    """What the agent answered in the run; None where it is not known, or failed."""
    given = outputs.get(item)
    if isinstance(given, Failed):
        return None
    return given.get("output") if given is not None else row.get("output")


def _answer(path: Path, number: int, line: JudgeScore, judge: Judge) -> Answer:
    if line.unscored:
        return UNSCORED
    if line.na or line.score == NOT_APPLICABLE:
        return NotApplicable()
    if line.score is UNSET:
        raise wrong(path, number, "score", "there, or null where the judge gave none", UNSET)
    if line.score is None:
        return UNSCORED
    score, (low, high) = line.score, judge.score_range
    boolean = judge.score_type is ScoreType.BOOLEAN
    sound = isinstance(score, (int, float)) and low <= score <= high
    if not sound or (isinstance(score, bool) and not boolean) or (boolean and score not in (0, 1)):
        scale = f"{judge.id} scores {judge.score_type.value} from {low:g} to {high:g}"
        raise wrong(path, number, "score", f"on the scale: {scale}", score)
    return Scored(float(score))
