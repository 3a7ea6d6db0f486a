"""Reads what the loop goes by: the scores of an eval run, its items and outputs, the Agent Definition.

What can't be right is refused with file, line, field and remedy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalcore.gates.golden import CandidateAnswer, Failed, category_of
from evalcore.judges.score_parsing import NOT_APPLICABLE
from evalcore.optimisation.definition import AgentDefinition, BadDefinition, read_definition
from evalcore.registry.registry import Judge, Registry, UnknownJudge
from evalcore.scoring.answers import Answer, NotApplicable, Scored, Unscored
from evalcore.scoring.items import identity
from rampgate.ci_gate.inputs import BadFile, lines
from schemas.judges import ScoreType

UNSCORED = Unscored("the judge gave no score")


def read_agent(path: Path, vertical: str) -> AgentDefinition:
    """The Agent Definition of the vertical. Raises BadFile."""
    try:
        found = read_definition(str(path), path.read_bytes())
    except OSError as error:
        raise BadFile(f"{path}: can't be read: {error.strerror or error}") from error
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
    for line, one in lines(path):
        if one.get("dimension") is not None or "." in str(one.get("judge_id")):
            continue
        place = f"{path}:{line}"
        judge = _judge(place, one, registry, vertical)
        _same(place, one, "vertical", vertical)
        _same(place, one, "agent_id", agent.agent_id)
        _same(place, one, "agent_version", agent.agent_version)
        _same(place, one, "judge_version", judge.version)
        item = _item(place, one).removeprefix(prefix)
        if item not in known:
            raise BadFile(f"{place}: item_id: {item[:80]!r} is no item of the dataset; give the one that was judged")
        key = (judge.id, item)
        if (before := at.setdefault(key, line)) != line:
            raise BadFile(f"{place}: item_id: {item[:80]!r} was scored by this judge on line {before}")
        found[key] = _answer(place, one, judge)
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


def _judge(place: str, one: Mapping[str, Any], registry: Registry, vertical: str) -> Judge:
    name = one.get("judge_id")
    if not isinstance(name, str) or not name:
        raise BadFile(f"{place}: judge_id: is missing; a line is {{judge_id, item_id, score}}, and no gate's document")
    try:
        return registry.judge(name, vertical)
    except UnknownJudge as error:
        raise BadFile(f"{place}: judge_id: {error}") from error


def _item(place: str, one: Mapping[str, Any]) -> str:
    for field in ("item_id", "trace_id"):
        value = one.get(field)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return str(value)
    raise BadFile(f"{place}: item_id: an id is needed, a text or a whole number")


def _same(place: str, one: Mapping[str, Any], field: str, ours: str | None) -> None:
    told = one.get(field)
    if told is not None and ours is not None and str(told) != ours:
        raise BadFile(f"{place}: {field}: {str(told)[:80]!r} is not {ours!r}; give the results of this one")


def _answer(place: str, one: Mapping[str, Any], judge: Judge) -> Answer:
    score = one.get("score")
    if one.get("unscored"):
        return UNSCORED
    if one.get("na") or score == NOT_APPLICABLE:
        return NotApplicable()
    if score is None:
        if "score" not in one:
            raise BadFile(f"{place}: score: is missing; null says that the judge gave none")
        return UNSCORED
    low, high = judge.score_range
    boolean = judge.score_type is ScoreType.BOOLEAN
    sound = isinstance(score, (int, float)) and math.isfinite(score) and low <= score <= high
    if not sound or (isinstance(score, bool) and not boolean) or (boolean and score not in (0, 1)):
        scale = f"{judge.id} scores {judge.score_type.value} from {low:g} to {high:g}"
        raise BadFile(f"{place}: score: {str(score)[:40]!r} is none: {scale}")
    return Scored(float(score))
