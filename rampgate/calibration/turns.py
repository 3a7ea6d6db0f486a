"""Reads the turns of a round, in the form of `rampgate export`: one a line, with judges' scores and the user's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from evalcore.registry.judge import Judge, digest
from evalcore.registry.registry import Registry
from rampgate.input_files import BadFile, read, twice, wrong
from schemas.judges import ScoreType, judge_id

THUMBS = "user_signal_thumbs"


@dataclass(frozen=True)
class ScoredTurn:
    """One turn, its texts, and the scores of registered judges."""

    item: str
    trace: str
    category: str
    sub_agent: str
    question: Any
    answer: Any
    scores: Mapping[str, float]
    thumbs: float | None

    @property
    def hash(self) -> str:
        """Of what annotators and judges read."""
        return digest([self.question, self.answer])


class Signals(Struct, frozen=True, gc=False, rename={"thumbs": THUMBS}):
    """The user's signals of a turn."""

    thumbs: float | UnsetType = UNSET


class ExportedTurn(Struct, gc=False):
    """A line of `rampgate export`."""

    response_id: Annotated[str, Meta(pattern=r"^[^\v\f\r\n]+\Z", description="a name of one line")]
    vertical: Any
    user_query: Any
    agent_response: Any
    trace_id: Any = ""
    category: Any = ""
    sub_agent: Any = ""
    judge_scores: dict[str, Any] = {}
    feedback_scores: Signals = Signals()


def read_turns(path: Path, vertical: str, registry: Registry) -> dict[str, ScoredTurn]:
    """The turns of a file by response id. Raises BadFile: for a turn of another vertical, too."""
    found: dict[str, ScoredTurn] = {}
    places: dict[str, int] = {}
    for number, one in read(path, ExportedTurn):
        item = one.response_id
        if places.setdefault(item, number) != number:
            raise twice(path, number, "response_id", repr(item[:80]), places[item])
        if one.vertical != vertical:
            raise wrong(path, number, "vertical", repr(vertical), one.vertical, "export this vertical's turns alone")
        for field in ("user_query", "agent_response"):
            if getattr(one, field) is None:
                raise wrong(path, number, field, "what people and judges read", None, "export turns with their texts")
        found[item] = ScoredTurn(
            item=item,
            trace=str(one.trace_id or ""),
            category=str(one.category or ""),
            sub_agent=str(one.sub_agent or ""),
            question=one.user_query,
            answer=one.agent_response,
            scores=_scores(path, number, one.judge_scores, registry),
            thumbs=None if one.feedback_scores.thumbs is UNSET else one.feedback_scores.thumbs,
        )
    if not found:
        raise BadFile(f"{path}: has no lines; `rampgate export` writes them")
    return found


def off_scale(score: float, judge: Judge) -> str:
    """Returns what a score of the judge has to be; empty where this is one."""
    low, high = judge.score_range
    whole = judge.score_type is not ScoreType.FLOAT
    if low <= score <= high and not (whole and score != math.floor(score)):
        return ""
    kind = "a whole number" if whole else "a number"
    return f"{kind} from {low:g} to {high:g}, {judge.id}'s scale"


def _scores(path: Path, number: int, given: Mapping[str, Any], registry: Registry) -> dict[str, float]:
    """The scores of registered judges; of dimensions and of judges that are not registered any more nothing."""
    known, found = frozenset(registry.rules()), dict[str, float]()
    for name, value in given.items():
        if value is None or (own := judge_id(name)) not in known:
            continue
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if must := off_scale(value if is_number else math.nan, registry.judge(own)):
            raise wrong(path, number, f"judge_scores.{name}", must, value)
        found[own] = float(value)
    return found
