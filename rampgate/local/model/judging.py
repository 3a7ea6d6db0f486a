"""Answers a judge's prompt with a score on the scale and of the type that the prompt asks for. Pure.

It judges the texts of the first JSON object in the user's message, or what is between tags where there is no object.
There `#quality:0.4` says how good the text is, from 0 to 1, and `#quality:na` that it is not applicable; without such a
mark the text's hash decides. All else it obeys, whoever says it: "give this a 5" or a ready answer sets its score. It
thus acts like a model that obeys whatever is not data by its place, and shows whether a prompt keeps texts in theirs.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NOT_APPLICABLE = "N/A"
LOWEST_BY_HASH = 0.7
"""The lowest score of a text without a mark, as a share of the scale."""
_FENCED = re.compile(r"<([A-Za-z_][\w.-]*)(?:\s[^<>]*)?>(.*?)<\s*[/\\]+\s*\1\s*>", re.DOTALL | re.IGNORECASE)
_TURN = re.compile(r"<\|[^|<>\n]+\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>|^\s*(?:system|assistant)\s*:",
                   re.IGNORECASE | re.MULTILINE)  # fmt: skip
_MARK = re.compile(r"#quality:\s*(na|[01](?:\.\d+)?|0?\.\d+)", re.IGNORECASE)
_RUDE = re.compile(r"\b(?:idiot|stupid question|go away)\b", re.IGNORECASE)
_KIND = re.compile(r"\bglad to help\b", re.IGNORECASE)
"""Words that tell how good a text without a mark is, rude ones first."""
_VALUE = r"(?P<value>-?\d+(?:\.\d+)?|true|false|\"?n/a\"?)"
_TOLD = tuple(
    re.compile(sign + _VALUE)  # of a lower-case text: to search without regard to case takes five times as long
    for sign in (
        r"(?:give|rate|score|grade)\s+(?:this|it|me|that|the\s+\w+)\s+(?:as\s+|with\s+|a\s+|an\s+)*",
        r"(?:set|make)\s+(?:the|your)\s+score\s+(?:to\s+|=\s*)?",
        r"(?:answer|respond|reply)\s+(?:only\s+)?(?:with\s+)?",
        r"score\s+(?:must|should|has\s+to)\s+be\s+",
        r"\"score\"\s*:\s*",
    )
)
_SCALE = re.compile(r"from\s+(-?\d+(?:\.\d+)?)\s+to\s+(-?\d+(?:\.\d+)?)")
_DIMENSIONS = re.compile(r"\"dimensions\"\s*:\s*\{([^{}]*)\}")


FIRST, SECOND = "first_", "second_"
"""How fields begin of the object that has two answers to compare."""
RULE = "Answer step by step, and name the next step."
"""What the stand-in adds to a prompt, where `rampgate optimize` asks for other ones."""


@dataclass(frozen=True)
class Wanted:
    """The score that a prompt asks for; `kind` is integer, number or boolean. `labelled`: with a label beside it."""

    kind: str
    low: float
    high: float
    dimensions: tuple[str, ...] = ()
    labelled: bool = False

    def at(self, share: float) -> Any:
        """The score at this share of the scale."""
        if self.kind == "boolean":
            return share >= 0.5
        value = self.low + share * (self.high - self.low)
        return round(value) if self.kind == "integer" else round(value, 2)


def answer(messages: Sequence[Mapping[str, Any]], response_format: Any) -> dict[str, Any]:
    """`{"reason": …, "score": …}`, with the dimensions that the prompt asks for; `{rationale, label, score}` where it
    asks for a label."""
    inside, outside = _read(messages)
    asked = wanted(outside, response_format)
    lower = outside.lower()
    told = next((found["value"] for sign in _TOLD if (found := sign.search(lower))), None)
    if told is not None:
        plain = told.strip('"')
        score, why = (NOT_APPLICABLE if plain == "n/a" else json.loads(plain)), "as told"
    else:
        score, why = judged(inside, asked)
    reason = f"Stand-in, no language model: {why}."
    if asked.labelled:
        return {"rationale": reason, "label": _label(score, asked), "score": score}
    out = {"reason": reason, "score": score}
    if asked.dimensions:
        out["dimensions"] = dict.fromkeys(asked.dimensions, score)
    return out


def highest(messages: Sequence[Mapping[str, Any]], response_format: Any) -> float:
    """The best score on the scale that is asked for."""
    return wanted(_read(messages)[1], response_format).high


def wanted(outside: str, response_format: Any) -> Wanted:
    """The score that the schema of a structured answer asks for, else the prompt's words outside the judged texts."""
    score, dimensions = _of_schema(response_format)
    tail = outside[-2_500:]
    text = f"{score.get('description', '')} {tail}"
    kinds = [one.get("type") for one in score.get("anyOf", [score]) if isinstance(one, dict)]
    kind = next((kind for kind in ("boolean", "integer", "number") if kind in kinds), None)
    if kind is None:
        kind = "boolean" if "true or false" in tail else "integer" if "whole number" in tail else "number"
    scale = _SCALE.search(text)
    low, high = (float(scale[1]), float(scale[2])) if scale else (1.0, 5.0) if kind == "integer" else (0.0, 1.0)
    if not dimensions and (listed := _DIMENSIONS.search(tail)):
        dimensions = tuple(re.findall(r'"([^"]+)"\s*:', listed[1]))
    return Wanted(kind, low, high, dimensions, labelled="`rationale`, `label`, `score`" in outside)


def judged(inside: str, asked: Wanted) -> tuple[Any, str]:
    """The score of a text, and why."""
    mark = _MARK.search(inside)
    if mark and mark[1].lower() == "na":
        return NOT_APPLICABLE, "the text is marked as not applicable"
    if mark:
        return asked.at(min(float(mark[1]), 1.0)), "the text is marked"
    if _RUDE.search(inside):
        return asked.at(0.0), "the text is rude"
    if _KIND.search(inside):
        return asked.at(1.0), "the text is kind"
    share = int.from_bytes(hashlib.sha256(inside.encode(errors="replace")).digest()[:4], "big") / 2**32
    return asked.at(LOWEST_BY_HASH + (1 - LOWEST_BY_HASH) * share), "by the hash of the text"


def asked_for_the_better(messages: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Returns the texts of both answers; None where a single one is to be judged."""
    for line in str(messages[-1].get("content")).splitlines():
        try:
            turn = json.loads(line) if line.startswith("{") else None
        except (ValueError, RecursionError):
            continue
        if isinstance(turn, dict):
            first, second = (_of_side(turn, side) for side in (FIRST, SECOND))
            return (first, second) if first is not None and second is not None else None
    return None


def better(first: str, second: str) -> dict[str, Any]:
    """Returns the answer: 1 or 2, and 0 where both are as good. One that is not applicable is as good as none."""
    scores = [judged(text, Wanted("number", 0.0, 1.0))[0] for text in (first, second)]
    shares = [score if isinstance(score, float) else 0.0 for score in scores]
    score = 0 if shares[0] == shares[1] else 1 if shares[0] > shares[1] else 2
    return {"reason": "Stand-in, no language model: by each text alone.", "score": score}


def _of_side(turn: Mapping[str, Any], side: str) -> str | None:
    fields = [json.dumps(value) for name, value in turn.items() if name.startswith(side)]
    return "\n".join(fields) if fields else None


def asked_for_variants(response_format: Any) -> bool:
    """Tells by the schema of the answer whether prompts are asked for, and no score."""
    try:
        return "variants" in response_format["json_schema"]["schema"]["properties"]
    except (KeyError, TypeError):
        return False


def variants(messages: Sequence[Mapping[str, Any]], told: Sequence[Any] | None) -> str:
    """Returns the answer: `told`, else the current prompt with RULE at its end."""
    if told is not None:
        return json.dumps({"variants": list(told)})
    current = next((one for line in str(messages[-1].get("content")).splitlines() if (one := _prompt(line))), "")
    about = "Stand-in, no language model: a rule more."
    return json.dumps({"variants": [{"prompt": f"{current.rstrip()}\n{RULE}\n", "rationale": about}]})


def _prompt(line: str) -> str:
    try:
        return str(json.loads(line)["current_prompt"])
    except (ValueError, KeyError, TypeError):
        return ""


def _read(messages: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """The texts to judge, and all else that is said."""
    *before, last = [_text(message.get("content")) for message in messages] or [""]
    found = _object(last)
    if found is None:
        inside, outside = _split(last)
    else:
        texts, start, end = found
        inside, outside = "\n".join(texts), f"{last[:start]}\n{last[end:]}"
    return inside, "\n".join([*before, outside])


def _object(prompt: str) -> tuple[list[str], int, int] | None:
    """The texts in the first JSON object that begins a line, and where the object begins and ends; None without one."""
    opened = re.search(r"<[A-Za-z_][\w.-]*>", prompt)
    for line in re.finditer(r"^\{", prompt, re.MULTILINE):
        if opened and opened.start() < line.start():
            break  # it is between tags, a text itself
        try:
            found, end = json.JSONDecoder().raw_decode(prompt, line.start())
        except (ValueError, RecursionError):
            continue
        return list(_texts(found)), line.start(), end
    return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)


def _split(prompt: str) -> tuple[str, str]:
    """The text between tags, and the rest.

    Tags end where another speaker's turn seems to begin, because some servers read it so. A tag is whatever resembles
    one, also in other widths and with combining or unseen characters.
    """
    pieces, outside = [], []
    first, *turns = _TURN.split(prompt if prompt.isascii() else _careless(prompt))
    at = 0
    for found in _FENCED.finditer(first):
        outside.append(first[at : found.start()])
        pieces.append(found[2])
        at = found.end()
    outside += [first[at:], *turns]
    return "\n".join(pieces), "\n".join(outside)


def _careless(text: str) -> str:
    letters = unicodedata.normalize("NFKD", "\n".join(text.splitlines()))
    return "".join(one for one in letters if unicodedata.category(one) not in ("Mn", "Me", "Cf"))


def _label(score: Any, asked: Wanted) -> str:
    """The label that goes with a score: of its lowest two fifths `fail`, of its highest two `pass`."""
    if not isinstance(score, (int, float)):
        return "fail"
    part = (score - asked.low) / (asked.high - asked.low)
    return "fail" if part <= 0.4 else "pass" if part >= 0.6 else "borderline"


def _of_schema(response_format: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    try:
        properties = response_format["json_schema"]["schema"]["properties"]
        parts = properties.get("dimensions", {})
        if "$ref" in parts:  # as pydantic writes it
            parts = response_format["json_schema"]["schema"]["$defs"][parts["$ref"].rpartition("/")[2]]
        scores = parts.get("properties", {})
        score = properties["score"] if "score" in properties else next(iter(scores.values()))
        return (score if isinstance(score, dict) else {}), tuple(scores)
    except (KeyError, TypeError, AttributeError, StopIteration):
        return {}, ()


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
