"""What a judge's model is asked about an item, and the key under which its answer is kept. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from evalcore.judges.bindings import CONTEXTS, Context, bind
from evalcore.judges.fencing import fill
from evalcore.judges.score_parsing import NOT_APPLICABLE
from evalcore.registry.judge import Judge
from schemas.judges import ScoreType


@dataclass(frozen=True)
class Task:
    """One item for one judge. `source` is the dataset item or trace that the judge's bindings for `context` read;
    `weight` is the item's, by inverse probability of its sampling; `digest` is the hash of the bytes that `source` was
    read from, empty where nobody knows them."""

    judge: Judge
    item: str
    context: Context
    source: Mapping[str, Any]
    weight: float = 1.0
    digest: bytes = b""


@dataclass(frozen=True)
class Ask:
    """A call's whole content. `schema` is what a structured answer is held to, where the provider can."""

    model: str
    temperature: float
    messages: Sequence[Mapping[str, str]]
    schema: Mapping[str, Any]
    output: str

    @property
    def tokens(self) -> int:
        """Of the prompt, roughly: four characters each."""
        return sum(len(message["content"]) for message in self.messages) // 4 + 1


def ask(judge: Judge, context: Context, source: Mapping[str, Any]) -> Ask:
    """The same rubric in every context (PC5 AC-9). Raises evalcore.judges.bindings.Unbound; ValueError for an unknown
    context."""
    if context not in CONTEXTS:
        raise ValueError(f"no context {context!r}; there are {', '.join(CONTEXTS)}")
    rule = judge.rule
    values = bind(rule.variables, context, source)
    messages = (
        {"role": "system", "content": rule.task_introduction},
        {"role": "user", "content": fill(rule.prompt, values)},
    )
    schema = answer_schema(judge.score_type, judge.score_range, tuple(rule.dimensions or ()))
    return Ask(rule.model, float(rule.temperature), messages, schema, values.get("output", ""))


def key(judge: Judge, asked: Ask, source: str) -> str:
    """The hash of judge id and version, model, parameters, rendered prompt and output (contracts §5). `source` is where
    the model is: a stand-in's answers are never taken for those of the model it stands for."""
    said = [part for message in asked.messages for part in (message["role"], message["content"])]
    parts = (judge.id, judge.version, source, asked.model, repr(asked.temperature), asked.output, *said)
    # The lengths, so that what one part ends with is never taken for the next one's beginning.
    whole = "".join([repr(list(map(len, parts))), *parts])
    return hashlib.sha256(whole.encode(errors="surrogatepass")).hexdigest()


_KINDS = {ScoreType.INTEGER: "integer", ScoreType.FLOAT: "number", ScoreType.BOOLEAN: "boolean"}


@lru_cache(maxsize=256)
def answer_schema(score_type: ScoreType, scale: tuple[float, float], dimensions: tuple[str, ...]) -> Mapping[str, Any]:
    """A JSON Schema in the part of the language that providers hold models to strictly. The scale stands in words:
    not all of them know bounds. What is read is stricter yet (evalcore.judges.score_parsing.read)."""
    low, high = scale
    said = "true or false" if score_type is ScoreType.BOOLEAN else f"from {low:g} to {high:g}"
    score = {
        "anyOf": [{"type": _KINDS[score_type]}, {"type": "string", "enum": [NOT_APPLICABLE]}],
        "description": f"{said}, or {NOT_APPLICABLE}",
    }
    properties: dict[str, Any] = {"score": score, "reason": {"type": "string"}}
    if dimensions:
        properties["dimensions"] = _closed(dict.fromkeys(dimensions, score))
    return _closed(properties)


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False
    }  # fmt: skip
