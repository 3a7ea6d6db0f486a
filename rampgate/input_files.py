"""Reads the files that a command is given: JSON Lines, JSON documents, YAML.

A line of a kind of file is a struct, whose types are its rules; a `Meta` says them in words, and what to do. Whatever
is wrong has one form: `path:line: field: must be X, got Y; remedy`.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, cast, get_args, get_origin

import msgspec
import orjson
from msgspec import Meta, Struct
from pydantic import BaseModel, ValidationError

from evalcore.judges.score_parsing import NOT_APPLICABLE
from evalcore.nesting import DEEPEST, too_deep
from evalcore.yaml.models import AnyModel, read_as
from rampgate.console import Failure

LARGEST: Final = 256 << 20
"""Bytes of a file, and so of a line."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_TRIMMED: Final = r"\A(?:\S+|\S[\s\S]*\S)\Z"
_PLAIN: Final = {str: "a text", int: "a whole number", float: "a number", list: "a list", dict: "an object"}

AnyLine = TypeVar("AnyLine", bound=Struct | BaseModel)
Document = TypeVar("Document", bound=BaseModel)

Id = Annotated[
    Annotated[str, Meta(pattern=_TRIMMED)] | int,
    Meta(description="a text without blanks at its ends, or a whole number"),
]
Text = Annotated[str, Meta(min_length=1, description="a text that is not empty")]
Number = Annotated[float, Meta(description="a number", extra={"remedy": "leave out the line where there is none"})]
ScoreValue = Annotated[
    float | bool | Literal["N/A"] | None,
    Meta(description=f'a number, true, false, "{NOT_APPLICABLE}", or null where the judge gave none'),
]


class BadFile(Failure):
    """A file is missing or has the wrong content; the message names file and line."""


def lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file with their line numbers, from 1; blank lines are passed over. Raises BadFile."""
    for number, line in enumerate(io.BytesIO(content(path).removeprefix(b"\xef\xbb\xbf")), start=1):
        if line.strip():
            yield number, _object(line, path, number)


def read(path: Path, kind: type[AnyLine]) -> Iterator[tuple[int, AnyLine]]:
    """The lines of a JSON Lines file as their kind, with their numbers, from 1. Raises BadFile."""
    for number, fields in lines(path):
        yield number, line_of(fields, kind, path, number)


def line_of(fields: dict[str, Any], kind: type[AnyLine], path: Path, number: int) -> AnyLine:
    """The fields of a line as their kind. Raises BadFile."""
    try:
        return msgspec.convert(fields, kind) if issubclass(kind, Struct) else kind.model_validate(fields)
    except msgspec.ValidationError as error:
        raise BadFile(f"{path}:{number}: {_fault_in(kind, fields)}") from error
    except ValidationError as error:
        raise BadFile(f"{path}:{number}: {_first(error)}") from error


def document(path: Path, model: type[Document], remedy: str) -> tuple[Document, Any]:
    """A JSON file as its model, and all that it has. Raises BadFile."""
    try:
        found = orjson.loads(content(path, remedy))
        return model.model_validate(found), found
    except orjson.JSONDecodeError as error:
        raise BadFile(f"{path}: {fault('', 'JSON', f'what is none: {error}', remedy)}") from error
    except ValidationError as error:
        raise BadFile(f"{path}: {_first(error)}; {remedy}") from error


def file_as(model: type[AnyModel], path: Path) -> AnyModel:
    """The YAML file as its model. Raises BadFile with all that is wrong in it."""
    parsed, findings = read_as(model, str(path), content(path))
    if parsed is None or findings:
        raise BadFile("; ".join(str(finding) for finding in findings))
    return parsed.model


def content(path: Path, remedy: str = "") -> bytes:
    """What a file has. Raises BadFile."""
    try:
        with path.open("rb") as file:
            found = file.read(LARGEST + 1)
    except OSError as error:
        raise BadFile(f"{path}: can't be read: {error.strerror or error}{f'; {remedy}' if remedy else ''}") from error
    if len(found) > LARGEST:
        raise BadFile(f"{path}: {fault('', f'at most {LARGEST >> 20} MB', 'more', remedy)}")
    return found


def wrong(path: Path, line: int, field: str, must: str, value: object, remedy: str = "") -> BadFile:
    """What is wrong with the value of a line's field. A text is quoted."""
    return BadFile(f"{path}:{line}: {fault(field, must, shown(value), remedy)}")


def twice(path: Path, line: int, field: str, what: str, before: int) -> BadFile:
    """What is wrong with a line that says again what the line `before` says."""
    return BadFile(f"{path}:{line}: {fault(field, 'there once', f'{what} on line {before} too', 'keep one')}")


def fault(field: str, must: str, got: str, remedy: str = "") -> str:
    """What is wrong with a field, in the one form; without its name, with the whole line."""
    named = f"{field.encode('utf-8', 'backslashreplace').decode()[:80]}: " if field else ""
    return f"{named}must be {must}, got {got}{f'; {remedy}' if remedy else ''}"


def shown(value: object) -> str:
    """The beginning of a value, as its file has it; a text in quotes."""
    if value is msgspec.NODEFAULT or value is msgspec.UNSET:
        return "nothing"
    return repr(value[:80]) if isinstance(value, str) else orjson.dumps(value, default=str).decode()[:80]


def _object(line: bytes, path: Path, number: int) -> dict[str, Any]:
    """The object of a line. Raises BadFile."""
    try:
        one: Any = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadFile(f"{path}:{number}: {_no_json(line, error)}") from error
    why = ""
    if not isinstance(one, dict):
        why = fault("", "an object", shown(one), "the file is JSON Lines, one object a line")
    # Only a line with so many brackets can be: the walk costs more than all else here.
    elif len(line) > 2 * DEEPEST and line.count(b"[") + line.count(b"{") > DEEPEST and too_deep(one):
        why = fault("", f"nested at most {DEEPEST} levels deep", "more", "write it flatter")
    elif field := _given_twice(line, one):
        why = fault(field, "there once", "it twice in this line", "keep one")
    if why:
        raise BadFile(f"{path}:{number}: {why}")
    return cast("dict[str, Any]", one)


def _no_json(line: bytes, error: ValueError) -> str:
    """Why a line is no JSON, with the field where one can be told: the fast parser names none, so it is parsed again,
    slowly and once."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return fault("", "UTF-8", "other bytes", "save the file as UTF-8")
    try:
        if found := _not_in_json(json.loads(line), ()):
            return found
    except (ValueError, RecursionError):
        pass  # the fast parser's own words say it
    cut = "" if line.endswith(b"\n") else "; its end may be cut off"
    return fault("", "JSON", f"what is none: {error}", f"the file is JSON Lines, one object a line{cut}")


def _not_in_json(one: object, way: tuple[str, ...]) -> str:
    """What is wrong with the first part that Python's parser takes and JSON has not; empty where there is none."""
    if isinstance(one, float) and not math.isfinite(one):
        return fault(".".join(way), "a finite number", str(one), "JSON has no other; leave out what has no score")
    if isinstance(one, str) and _SURROGATE.search(one):
        return fault(".".join(way), "a text", "half of a surrogate pair, which is no character", "write it again")
    parts = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
    inner = ((part, (*way, str(name))) for name, pair in parts for part in (name, pair))
    return next((found for part, place in inner if (found := _not_in_json(part, place))), "")


def _given_twice(line: bytes, one: dict[str, object]) -> str:
    """The field that a line's object has twice, of which a parser keeps one; empty where there is none.

    A line with no more colons than fields has none. Nor has one whose names stand in it once, each as it is read.
    """
    if line.count(b":") == len(one):
        return ""
    if b"\\u" not in line and all(name.isidentifier() and line.count(b'"%b"' % name.encode()) == 1 for name in one):
        return ""
    seen: set[str] = set()
    for name, _ in json.loads(line, object_pairs_hook=list):
        if name in seen:
            return str(name)
        seen.add(name)
    return ""


def _fault_in(kind: Any, value: object, way: tuple[str, ...] = ()) -> str:
    """What is wrong with the first part of a value that is not of its kind; empty where it is of it."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        for name, of, part in _parts(kind, value):
            if part is msgspec.NODEFAULT:
                return fault(".".join((*way, name)), _words(of)[0], shown(part), _words(of)[1])
            if found := _fault_in(of, part, (*way, name)):
                return found
        must, remedy = _words(kind)
        return fault(".".join(way), must, shown(value), remedy)
    return ""


def _parts(kind: Any, value: object) -> Iterator[tuple[str, Any, object]]:
    """The parts of an object or a list, each with its kind; NODEFAULT for a field that is needed and not there."""
    if isinstance(kind, type) and issubclass(kind, Struct) and isinstance(value, dict):
        for one in msgspec.structs.fields(kind):
            if one.required or one.encode_name in value:
                yield one.encode_name, one.type, value.get(one.encode_name, msgspec.NODEFAULT)
    elif get_origin(kind) is dict and isinstance(value, dict):
        yield from ((name, get_args(kind)[1], part) for name, part in value.items())
    elif get_origin(kind) is list and isinstance(value, list):
        yield from ((str(number), get_args(kind)[0], part) for number, part in enumerate(value))
    else:
        for inner in get_args(kind):
            yield from _parts(inner, value)


def _words(kind: Any) -> tuple[str, str]:
    """What a value has to be, and what to do where it is not."""
    for meta in getattr(kind, "__metadata__", ()):
        if isinstance(meta, Meta) and meta.description:
            return meta.description, (meta.extra or {}).get("remedy", "")
    if plain := _PLAIN.get(get_origin(kind) or kind):
        return plain, ""
    if isinstance(kind, type):
        return " or ".join(map(str, kind)) if issubclass(kind, Enum) else "an object", ""
    return next((said for inner in get_args(kind) if (said := _words(inner))[0]), ("", ""))


def _first(error: ValidationError) -> str:
    """The first of pydantic's faults, in the one form."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part)[:80] for part in first["loc"])
    if first["type"] == "missing":
        return fault(field, "there", "nothing")
    if first["type"] in ("model_type", "dict_type"):
        return fault(field, "an object", shown(first["input"]))
    must = first["msg"].removeprefix("Input should be ")
    return fault(field, must, shown(first["input"])) if must != first["msg"] else f"{field}: {must}"
