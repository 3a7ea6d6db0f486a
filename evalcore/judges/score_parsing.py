"""Reads a judge's answer strictly: what is not exactly a score on the judge's scale is no score. Pure."""

from __future__ import annotations

import json
import statistics
from collections.abc import Collection, Iterable
from typing import Any, Final

from evalcore.judges.evaluator import Evaluation, NoScore
from evalcore.registry.judge import Judge
from schemas.judges import ScoreType, judge_id

NOT_APPLICABLE: Final = "N/A"
AVERAGES: Final = ("score", "average")
"""What models call the mean of the dimensions, which is computed and never taken from them."""
LONGEST_REASON = 4_000
_LONGEST_SHOWN = 40
_FENCES = {"```", "```json", "```JSON"}


def read(text: str, judge: Judge) -> Evaluation:
    """Reads `{"reason": "…", "score": …}`, with `"dimensions": {…}` for a judge that has dimensions: each of them once.
    Of a judge whose score is made of them, an average that the model adds is passed over. Any other field is refused.
    Raises NoScore.

    INTEGER takes whole numbers, FLOAT numbers, both on the judge's scale; BOOLEAN takes true and false; each takes
    "N/A" where the rule allows it. Numbers in quotes, 4.0 for an INTEGER and 1 for a BOOLEAN are refused: a model that
    misses the type misses the rubric too. One code fence around the whole answer is removed, since models add it to
    JSON out of habit. Words before or after it and a second fence are refused: no score is ever searched for in prose.
    """
    scored, parts = judge.rule.score_of is None, ["dimensions"] if judge.dimensions else []
    answer = read_object(text, ["reason", *(["score"] if scored else []), *parts], () if scored else AVERAGES)
    reason = answer["reason"]
    if not isinstance(reason, str):
        raise NoScore("the reason is no text")
    storable = reason[:LONGEST_REASON].encode(errors="replace").decode()
    dimensions = _dimensions(answer.get("dimensions", {}), judge)
    return Evaluation(_value(answer["score"], judge) if scored else mean(dimensions.values()), storable, dimensions)


def mean(scores: Iterable[float | None]) -> float | None:
    """Returns the score that is made of those of its dimensions: the mean of the ones that apply, None without any."""
    given = [score for score in scores if score is not None]
    return statistics.fmean(given) if given else None


def read_object(text: str, fields: Collection[str], more: Collection[str] = ()) -> dict[str, Any]:
    """Reads an answer that is one JSON object with exactly these fields, each once, and `more` if it likes. Raises
    NoScore."""
    try:
        answer = _JSON.decode(_unfenced(text))
    except (ValueError, RecursionError) as error:
        raise NoScore(f"the answer is no JSON object: {error}") from error
    if not isinstance(answer, dict) or answer.keys() - set(more) != set(fields):
        raise NoScore(f"the answer is not one object with {' and '.join(fields)}")
    return answer


def _unfenced(text: str) -> str:
    """Returns the answer without the code fence around it."""
    text = text.strip()
    first, line_end, rest = text.partition("\n")
    fenced = line_end and first.rstrip() in _FENCES and rest.endswith("```")
    return rest.removesuffix("```") if fenced else text


def _dimensions(answer: Any, judge: Judge) -> dict[str, float | None]:
    """Returns the score of each dimension by its id. Raises NoScore."""
    if not judge.dimensions and not answer:
        return {}
    given = {judge_id(name): score for name, score in answer.items()} if isinstance(answer, dict) else {}
    if given.keys() != judge.dimensions.keys() or len(given) != len(answer):
        raise NoScore(f"the answer does not score each of the dimensions {', '.join(judge.dimensions)} once")
    return {name: _value(given[name], judge) for name in judge.dimensions}


def _value(score: Any, judge: Judge) -> float | None:
    """Returns a score as a number, None for "N/A". Raises NoScore."""
    if score == NOT_APPLICABLE:
        if not judge.rule.takes_na:
            raise NoScore("the score is N/A, which the judge's rule does not allow")
        return None
    kind = judge.score_type
    if kind is ScoreType.BOOLEAN:
        if not isinstance(score, bool):
            raise NoScore(f"score {_short(score)} is neither true nor false")
        return float(score)
    wanted = (int,) if kind is ScoreType.INTEGER else (int, float)
    if isinstance(score, bool) or not isinstance(score, wanted):
        raise NoScore(f"score {_short(score)} is no {'whole ' if kind is ScoreType.INTEGER else ''}number")
    low, high = judge.score_range
    if not low <= score <= high:  # NaN fails here too
        raise NoScore(f"score {_short(score)} is not from {low:g} to {high:g}")
    return float(score)


def _short(score: Any) -> str:
    """Returns a number as it is and the kind of anything else, whose words may be the turn's."""
    if isinstance(score, str | list | dict):
        return {str: "of a text", list: "of a list", dict: "of an object"}[type(score)]
    text = json.dumps(score)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the object. Raises ValueError for a key that it has twice."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key stands there twice")
    return fields


_JSON = json.JSONDecoder(object_pairs_hook=without_duplicates)
