"""Looks at an output without a model: a pattern, a JSON Schema, an exact text (schemas.checks.suite.Check). Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from evalcore.judges.bindings import Unbound, as_text, resolve
from evalcore.judges.score_parsing import without_duplicates
from evalcore.nesting import TOO_DEEP, too_deep
from evalcore.registry.judge import digest
from evalcore.registry.patterns import refusal, searched
from schemas.checks.suite import Check

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


@dataclass(frozen=True)
class Checked:
    """What a check found: 1 or 0, None where it can't tell; `reason` says why it is not 1."""

    score: float | None
    reason: str = ""


class AnswerCheck(Protocol):
    """Looks at an answer without a model. `version` is the hash of all that decides what is found."""

    @property
    def version(self) -> str: ...

    def check(self, item: Mapping[str, Any]) -> Checked:
        """Return what is found of an item, the case with the candidate's answer. Raises nothing."""
        ...


class Total(Protocol):
    """A score of a case that is made of its other ones. `version` is the hash of all that decides it."""

    @property
    def version(self) -> str: ...

    def total(self, scores: Mapping[str, float | str | None], reasons: Mapping[str, str]) -> Checked:
        """Return what the scores come to: those of a sample, each with its reason where there is one."""
        ...


class Checker:
    """One check of a suite. `schema` is the JSON Schema that it names. Raises ValueError for a pattern or a schema that
    can't be used."""

    def __init__(self, check: Check, schema: Any = None) -> None:
        self._check = check
        self.version = digest([check.model_dump(mode="json"), schema])
        """The hash of all that decides what is found."""
        if check.regex is not None and (why := refusal(check.regex)) is not None:
            raise ValueError(f"regex: {why}")
        self._validator = validator_of(check.json_schema, schema) if check.json_schema is not None else None

    def check(self, item: Mapping[str, Any]) -> Checked:
        """Returns what is found of an item, the case with the candidate's answer. Never raises."""
        try:
            value = resolve(self._check.field, item)
        except Unbound as error:
            return Checked(0.0, str(error))
        text = as_text(value)
        if self._check.regex is not None:
            return _matched(self._check.regex, text, absent=self._check.absent)
        if self._validator is not None:
            return fits(self._validator, value)
        return self._equals(item, text)

    def _equals(self, item: Mapping[str, Any], text: str) -> Checked:
        path = self._check.equals or ""
        try:
            wanted = resolve(path, item)
        except Unbound as error:
            return Checked(None, str(error))
        if wanted is None:
            return Checked(None, f"the case has no {path}")
        return Checked(1.0) if text.strip() == as_text(wanted).strip() else Checked(0.0, f"it is not the case's {path}")


def _matched(pattern: str, text: str, *, absent: bool) -> Checked:
    found, whole = searched(pattern, text)
    if found:
        return Checked(0.0, f"{pattern} is found in it") if absent else Checked(1.0)
    if not whole:
        return Checked(None, "it is too long to be searched whole")
    return Checked(1.0) if absent else Checked(0.0, f"{pattern} is not found in it")


def validator_of(name: str, schema: Any) -> Draft202012Validator:
    """Returns the validator, whose patterns RE2 runs: an answer may be made to keep a pattern that backtracks busy for
    ever. Raises ValueError for a schema that can't be used, with its `name`."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import extend
    from jsonschema_specifications import REGISTRY as SPECIFICATIONS
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    if too_deep(schema):
        raise ValueError(f"json_schema: {name} {TOO_DEEP}")
    for pattern in _patterns(schema):
        why = refusal(pattern) if isinstance(pattern, str) else "patternProperties is not taken; name the properties"
        if why is not None:
            raise ValueError(f"json_schema: {name}: pattern: {why}")
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"json_schema: {name} is no JSON Schema: {error.message}") from error
    known: Registry[Any] = SPECIFICATIONS.combine(Registry().with_resource("", DRAFT202012.create_resource(schema)))
    within = known.resolver()
    for ref in _references(schema):
        try:
            within.lookup(ref)
        except Unresolvable as error:
            raise ValueError(f"json_schema: {name}: $ref: {ref!r} is no place in it; nothing is fetched") from error
    # A registry of its own: the validator's default one fetches what it does not know.
    made: Draft202012Validator = extend(Draft202012Validator, {"pattern": _matches})(schema, registry=SPECIFICATIONS)
    return made


def _references(schema: Any) -> Iterator[str]:
    """Yields where a schema refers to; none where parts of it have names, which only a validator can follow."""
    found = list(_named(schema, ("$ref", "$dynamicRef", "$id")))
    if not any(name == "$id" for name, _ in found):
        yield from (ref for _, ref in found)


def _named(schema: Any, names: Collection[str]) -> Iterator[tuple[str, str]]:
    inner = schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else ()
    for name, one in inner:
        if name in names and isinstance(one, str):
            yield str(name), one
        yield from _named(one, names)


def _patterns(schema: Any) -> Iterator[Any]:
    """Yields what a schema's `pattern`s say, and its `patternProperties`."""
    named = schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else ()
    for name, inner in named:
        if name == "patternProperties" or (name == "pattern" and isinstance(inner, str)):
            yield inner
        yield from _patterns(inner)


def _matches(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    """The keyword `pattern`, as jsonschema asks for it."""
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and not searched(pattern, value)[0]:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def fits(validator: Draft202012Validator, value: Any) -> Checked:
    """Returns whether a value fits the schema; a text is read as JSON first, in which no key stands twice."""
    from referencing.exceptions import Unresolvable

    if isinstance(value, str):
        try:
            value = json.loads(value, parse_constant=_no_number, object_pairs_hook=without_duplicates)
        except ValueError as error:
            return Checked(0.0, f"it is no JSON: {error}")
        except RecursionError:
            return Checked(0.0, "it is nested too deep")
    try:
        wrong = next(validator.iter_errors(value), None)
    except RecursionError:
        return Checked(0.0, "it is nested too deep")
    except Unresolvable as error:
        return Checked(None, f"the schema refers to what it does not have: {error}"[:500])
    if wrong is None:
        return Checked(1.0)
    return Checked(0.0, f"{wrong.json_path}: {wrong.message}"[:500])


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
