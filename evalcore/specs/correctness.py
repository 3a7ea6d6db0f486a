"""Layer 1 without a model: what must stand in an answer, and what must not (AgentCI 2.0, Step 2). Pure.

Each assertion is found alone, whatever the others find. As `Assertion`s they are a suite case's own checks, so that
judges wait for them; `evalcore.specs.layers` says the same in messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from evalcore.judges.bindings import as_text
from evalcore.registry.judge import digest
from evalcore.registry.patterns import searched
from evalcore.specs.results import Message, Status
from evalcore.specs.terms import folded, has, similarity
from evalcore.suite.checks import Checked, fits, validator_of
from schemas.specs import Correctness

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

LAYER: Final = "correctness"
SHOWN: Final = 200
"""Characters of a text that a message shows."""


_folded = lru_cache(maxsize=2)(folded)  # two checks read one answer


@dataclass(frozen=True)
class Finding:
    """What an assertion found of an answer: `details` is JSON, `messages` say what is wrong with it."""

    details: Mapping[str, Any]
    messages: tuple[Message, ...] = ()

    @property
    def score(self) -> float | None:
        """1 where it holds, 0 where not, None where it can't be told."""
        statuses = {one.status for one in self.messages}
        return 0.0 if Status.FAIL in statuses else None if statuses else 1.0


@dataclass(frozen=True)
class Assertion:
    """One field of a query's correctness, as a check of a suite's case."""

    name: str
    of: Correctness

    @property
    def version(self) -> str:
        stated = self.of.model_dump(mode="json", include={self.name, "substrings"})
        return digest([self.name, stated])

    def find(self, output: Any) -> Finding:
        """Returns what is found of an output: a text, or JSON. Raises ValueError for a pattern or a schema
        that can't be used."""
        return _FINDERS[self.name](self.of, output)

    def check(self, item: Mapping[str, Any]) -> Checked:
        found = self.find(item.get("output"))
        return Checked(found.score, "; ".join(one.words for one in found.messages))


def assertions(of: Correctness | None) -> dict[str, Assertion]:
    """Returns what is asserted of an answer without a model, by the field's name: an empty list asserts nothing, an
    empty `exact_match` does."""
    stated = {name: getattr(of, name) for name in _FINDERS} if of is not None else {}
    return {name: Assertion(name, of) for name, value in stated.items() if of and value is not None and value != ()}


def _expected(of: Correctness, output: Any) -> Finding:
    terms, text = of.expected_in_answer or (), _folded(as_text(output))
    missing = [
        _failed(f"Expected '{term}' not found in answer", "expected_in_answer", place)
        for place, term in enumerate(terms)
        if not has(term, text, whole=True, within=bool(of.substrings))
    ]
    return Finding({"checked": list(terms), "all_found": not missing}, tuple(missing))


def _unwanted(of: Correctness, output: Any) -> Finding:
    terms, text = of.not_in_answer or (), _folded(as_text(output))
    found = [
        _failed(f"Forbidden term '{term}' found in answer", "not_in_answer", place)
        for place, term in enumerate(terms)
        if has(term, text, whole=False, within=bool(of.substrings))
    ]
    return Finding({"checked": list(terms), "none_found": not found}, tuple(found))


def _exact(of: Correctness, output: Any) -> Finding:
    wanted, text = (of.exact_match or "").strip(), as_text(output).strip()
    words = f"Exact match failed: must be {_shown(wanted)}, got {_shown(text)}"
    return _held("exact_match", text == wanted, {"expected": wanted}, words)


def _pattern(of: Correctness, output: Any) -> Finding:
    pattern = of.regex_match or ""
    found, whole = searched(pattern, as_text(output))
    known = found if found or whole else None
    words = f"Regex '{pattern}' did not match" if whole else "The answer is too long to be searched whole"
    return _held("regex_match", known, {"pattern": pattern}, words)


def _schema(of: Correctness, output: Any) -> Finding:
    found = fits(_validator(orjson.dumps(of.json_schema)), output)
    known = None if found.score is None else found.score == 1.0
    return _held("json_schema", known, {}, f"JSON schema validation failed: {found.reason}")


def _similar(of: Correctness, output: Any) -> Finding:
    if (to := of.similar_to) is None:
        return Finding({})
    found = similarity(to.measure, as_text(output), to.text)
    details = {"measure": to.measure.value, "similarity": round(found, 3), "min": to.min_similarity}
    words = f"Similarity by {to.measure.value}: {found:.2f} < min {to.min_similarity}"
    return _held("similar_to", found >= to.min_similarity, details, words)


_FINDERS: Final[Mapping[str, Callable[[Correctness, Any], Finding]]] = {
    "expected_in_answer": _expected,
    "not_in_answer": _unwanted,
    "exact_match": _exact,
    "regex_match": _pattern,
    "json_schema": _schema,
    "similar_to": _similar,
}
"""In the order in which they are reported."""


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Draft202012Validator:
    return validator_of("it", orjson.loads(schema))


def _held(name: str, holds: bool | None, details: Mapping[str, Any], words: str) -> Finding:
    """What a finding is that is true, false or unknown."""
    wrong = () if holds else (Message(words, (LAYER, name), Status.FAIL if holds is False else Status.INFRA),)
    return Finding({**details, "matched": holds}, wrong)


def _failed(words: str, *field: str | int) -> Message:
    return Message(words, (LAYER, *field), Status.FAIL)


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")
