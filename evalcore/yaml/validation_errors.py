"""Turns pydantic's errors about a file into findings: one per field, with place, clause, suggestion and fix."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from evalcore.yaml.field_help import is_central, kind, remedy
from evalcore.yaml.findings import Finding
from evalcore.yaml.model_fields import fields, inner_fields, models_at
from evalcore.yaml.source_locations import UNREADABLE, Document, FieldPath, field_name
from evalcore.yaml.suggestions import near_miss, nearest

_WANTED: Final = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
    "date_type": "a day, YYYY-MM-DD",
    "path_type": "a path",
}
_HOW: Final = {
    "text": "write a text",
    "a mapping": "write fields below it, one a line, each as 'name: value'",
    "a list": "write a list such as [first, second]",
}
_ORDER: Final = list(dict.fromkeys(["a whole number", "a number", "true or false", *_WANTED.values()]))
_QUOTED: Final = re.compile("'([^']*)'")
_OF_CHOICES: Final = ("enum", "literal_error", "bool_type", "int_type", "float_type", "dict_type")
_BOUNDS: Final = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_LENGTHS: Final = {
    "too_short": ("min_length", "at least", "more"),
    "too_long": ("max_length", "at most", "fewer"),
}


@dataclass
class FieldErrors:
    """All errors of one field. `at_key`: they are about the field's name, not its value."""

    path: FieldPath
    at_key: bool
    errors: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def kinds(self) -> list[str]:
        return [str(error["type"]) for error in self.errors]


class Wording(NamedTuple):
    """The text of a finding. `fix` is for this value; `general_fix` for a field that has no example either."""

    check: str
    message: str
    fix: str = ""
    general_fix: str = "correct it as the message says, or remove the field"


def wording(found: FieldErrors) -> Wording:
    """Says what is wrong with a field's value, and what to write instead."""
    error, kinds = found.errors[0], found.kinds
    value, context = error["input"], error.get("ctx") or {}
    shown = described(value)
    choices = listed(_choices(found))
    if choices:
        check = "unknown-key" if found.at_key else "unknown-value"
        meant = near_miss(value, choices.split(", ")) if isinstance(value, str) else ""
        return Wording(check, f"{shown} is none of {choices}{meant}", f"write one of {choices}")
    if all(kind in _WANTED for kind in kinds):
        wanted = _wanted(kinds)
        general = _HOW.get(wanted, f"write {wanted}")
        if value is None:
            return Wording("empty-value", f"has no value; it must be {wanted}", "", general)
        return Wording("wrong-type", f"must be {wanted}, not {shown}", _type_fix(kinds, value), general)
    kind = kinds[0]
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        bound = f"{words} {context[name]}"
        return Wording("out-of-range", f"must be {bound}, not {shown}", f"write a number that is {bound}")
    if kind == "string_too_long":
        return Wording("too-long", f"is longer than {context['max_length']} characters", "shorten it")
    if kind in _LENGTHS:
        name, words, more = _LENGTHS[kind]
        count = len(value) if isinstance(value, (list, dict)) else context.get("actual_length")
        message = f"must have {words} {context[name]} entries, not {count}"
        return Wording("wrong-length", message, "", f"write {context[name]} entries or {more}")
    if kind == "string_pattern_mismatch":
        return _wrong_form(str(value), shown, context["pattern"])
    if kind == "string_too_short":
        return Wording("empty-value", "has no text", "", "write a text, or remove the field")
    if kind == "value_error":
        return Wording("wrong-value", f"{context['error']}, not {shown}")
    if kind.startswith("date"):
        day = "a day, YYYY-MM-DD"
        return Wording("wrong-value", f"must be {day}, not {shown}", "", f"write {day}")
    return Wording("wrong-value", f"{error['msg'][:1].lower()}{error['msg'][1:]}")


def _choices(found: FieldErrors) -> list[str]:
    """Returns the words that a field accepts; none where it accepts others too."""
    if not all(kind in _OF_CHOICES for kind in found.kinds):
        return []
    expected = (str((error.get("ctx") or {}).get("expected", "")) for error in found.errors)
    return [name for text in expected for name in _QUOTED.findall(text)]


def _wrong_form(text: str, shown: str, pattern: str) -> Wording:
    if r"\[-?" in pattern:
        general = "write names with dots between them, such as input.messages[-1].content"
        return Wording("wrong-format", f"{shown} is no dotted path such as input.messages[-1].content", "", general)
    if not text.strip():
        return Wording("empty-value", "has no text", "", "write a text, or remove the field")
    if pattern.startswith(r"^[^\s"):
        message = f"{shown} has space around it, a line break, or a sign that a reader does not see"
        return Wording("wrong-format", message, "write one line of text")
    return Wording("wrong-format", f"{shown} has not the form it must have", f"it must match {pattern}")


def _wanted(kinds: list[str]) -> str:
    """Returns the types that a field accepts, in words."""
    names = sorted({_WANTED[kind] for kind in kinds}, key=_ORDER.index)
    if "a number" in names and "a whole number" in names:
        names.remove("a whole number")
    return ", ".join(names[:-1]) + " or " + names[-1] if len(names) > 1 else names[0]


def _type_fix(kinds: list[str], value: Any) -> str:
    """Returns how to write this value in the type that the field accepts; "" where it can't be told."""
    if kinds == ["string_type"] and not isinstance(value, (dict, list)) and value is not None:
        return f"put it in quotes: '{str(value).lower() if isinstance(value, bool) else value}'"
    if isinstance(value, str) and "bool_type" in kinds and value.lower() in ("yes", "on", "true", "no", "off", "false"):
        return f"write {'true' if value.lower() in ('yes', 'on', 'true') else 'false'}, without quotes"
    if isinstance(value, str) and ("int_type" in kinds or "float_type" in kinds) and value[:1].isdigit():
        return "write a plain decimal number, without quotes, leading zeros or underscores"
    return ""


def described(value: Any) -> str:
    """Returns a value as messages name it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = " ".join(value.split())
        return repr(text if len(text) <= 60 else text[:59] + "…") if text else "empty text"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, date):
        return f"the day {value}"
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "that"


def listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def findings_of(model: type[BaseModel], document: Document, errors: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """Yields one finding for each field that pydantic's errors are about."""
    fields_with_errors = _gathered(document, errors)
    unknown = {found.path for found in fields_with_errors if "extra_forbidden" in found.kinds}
    missing = {found.path for found in fields_with_errors if "missing" in found.kinds}
    for found in fields_with_errors:
        path = found.path
        if found.errors[0]["input"] is UNREADABLE:
            continue
        if path in missing:
            if path[:-1] not in document.incomplete:
                yield _missing(model, document, path, unknown)
        elif path in unknown:
            yield _unknown(model, document, path, missing)
        else:
            words, help_ = wording(found), remedy(model.__name__, path)
            example = f"write it like {path[-1]}: {help_.example}" if help_.example and not found.at_key else ""
            fix = words.fix or example or words.general_fix
            yield _finding(document, path, words.check, words.message, help_.clause, fix)


def _finding(document: Document, path: FieldPath, check: str, message: str, clause: str, fix: str) -> Finding:
    file, field = document.source(path)
    return Finding(file, *document.at(path), field_name(field), check, message, clause, fix)


def _gathered(document: Document, errors: Iterable[Mapping[str, Any]]) -> list[FieldErrors]:
    """Groups errors by their field. Of a union only the member that was meant counts: a mapping with an error inside is
    not called no number."""
    by_place: dict[tuple[FieldPath, bool], FieldErrors] = {}
    for error in errors:
        path, at_key = _path(document.data, error)
        made = isinstance(error["input"], dict) and not isinstance(_value_at(document.data, path), dict)
        if made and error["type"].endswith("_type"):
            continue  # a mapping that was made on the way to the model; what is wrong inside has findings of its own
        if error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]:
            continue  # pydantic counts those entries alone that fit
        by_place.setdefault((path, at_key), FieldErrors(path, at_key)).errors.append(error)
    paths = [path for path, _ in by_place]

    def is_of_another_member(found: FieldErrors) -> bool:
        deeper = any(len(path) > len(found.path) and path[: len(found.path)] == found.path for path in paths)
        return deeper and bool(found.path) and all(kind.endswith("_type") for kind in found.kinds)

    return [found for found in by_place.values() if not is_of_another_member(found)]


def _path(data: Any, error: Mapping[str, Any]) -> tuple[FieldPath, bool]:
    """Returns an error's path in the file, without the names of union members, and whether it is about the key."""
    path: list[str | int] = []
    location = error["loc"]
    if (dotted := _dotted(data, location)) is not None:
        return dotted, False
    for number, part in enumerate(location):
        if part == "[key]":
            return tuple(path), True
        last = number == len(location) - 1
        if isinstance(data, dict) and (part in data or (last and error["type"] == "missing")):
            path.append(part)
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            path.append(part)
            data = data[part]
    return tuple(path), False


def _dotted(data: Any, location: tuple[Any, ...]) -> FieldPath | None:
    """Returns the path of a threshold that the file has as `judge.milestone: value`. The model got it as a mapping
    below `judge`."""
    if len(location) > 2 and location[0] == "thresholds" and isinstance(data, dict):
        written = data.get("thresholds")
        names = (f"{location[1]}.{part}" for part in location[2:])
        if isinstance(written, dict):
            return next((("thresholds", name) for name in names if name in written), None)
    return None


def _value_at(data: Any, path: FieldPath) -> Any:
    for part in path:
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return None
    return data


def _missing(model: type[BaseModel], document: Document, path: FieldPath, unknown: set[FieldPath]) -> Finding:
    name = str(path[-1])
    where = remedy(model.__name__, path)
    beside = [str(other[-1]) for other in unknown if other[:-1] == path[:-1]]
    meant = nearest(name, beside)
    message = f"is required: {where.what}" if where.what else "is required"
    if meant is not None:
        line = document.at((*path[:-1], meant))[0]
        fix = f"rename {meant!r} in line {line} to {name!r}"
    else:
        fix = f"add '{name}: {where.example or '…'}'"
    return _finding(document, path, "missing-field", message, where.clause, fix)


def _unknown(model: type[BaseModel], document: Document, path: FieldPath, missing: set[FieldPath]) -> Finding:
    name = str(path[-1])
    known = sorted({field for found in models_at(model, path[:-1]) for field in fields(found)})
    above = field_name(document.source(path[:-1])[1])
    where = f"{kind(model.__name__)} under {above}" if above else kind(model.__name__)
    if model.__name__ == "VerticalRuleFile" and len(path) == 1 and is_central(name):
        message = (
            f"belongs to the central rule file; a vertical does not fork a judge, {where} carries only {listed(known)}"
        )
        return _finding(document, path, "unknown-field", message, "PF-9 §5.2", f"remove {name!r}")
    wanted = [str(other[-1]) for other in missing if other[:-1] == path[:-1]]
    elsewhere = inner_fields(model).get(name, []) if len(path) == 1 else []
    meant = nearest(name, wanted) or (elsewhere[0] if elsewhere else nearest(name, known))
    message = f"is no field of {where}" + (f"; did you mean {meant!r}?" if meant else "")
    fix = f"write {meant!r} instead" if meant else f"remove it; known are {listed(known)}"
    return _finding(document, path, "unknown-field", message, remedy(model.__name__, path).clause, fix)
