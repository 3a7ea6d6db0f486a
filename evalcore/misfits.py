"""What pydantic says of a file, as findings: one per field, with its place, the clause, the near miss and the fix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from evalcore.near import nearest
from evalcore.placed import UNREADABLE, Document, FieldPath, field_name
from evalcore.problems import Problem
from evalcore.remedies import is_central, kind, remedy
from evalcore.shapes import fields, inner_fields, models_at
from evalcore.wording import Misfit, how, listed, wrong


def misfits(model: type[BaseModel], document: Document, errors: Iterable[Mapping[str, Any]]) -> Iterator[Problem]:
    found = _gathered(document, errors)
    unknown = {misfit.path for misfit in found if "extra_forbidden" in misfit.kinds}
    missing = {misfit.path for misfit in found if "missing" in misfit.kinds}
    for misfit in found:
        if misfit.errors[0]["input"] is UNREADABLE:
            continue
        if misfit.path in missing:
            if misfit.path[:-1] not in document.incomplete:
                yield _missing(model, document, misfit.path, unknown)
        elif misfit.path in unknown:
            yield _unknown(model, document, misfit.path, missing)
        else:
            check, message, fix = wrong(misfit)
            where = remedy(model.__name__, misfit.path)
            if not fix and where.example and not misfit.at_key:
                fix = f"write it like {misfit.path[-1]}: {where.example}"
            fix = fix or how(misfit)
            yield _finding(document, misfit.path, check, message, where.clause, fix)


def _finding(document: Document, path: FieldPath, check: str, message: str, clause: str, fix: str) -> Problem:
    return Problem(document.file, *document.at(path), field_name(path), check, message, clause, fix)


def _gathered(document: Document, errors: Iterable[Mapping[str, Any]]) -> list[Misfit]:
    """Errors by the field they are about. Of a union only the member that was meant counts: a mapping is not told that
    it is no number when something inside it is wrong."""
    by_place: dict[tuple[FieldPath, bool], Misfit] = {}
    for error in errors:
        path, at_key = _path(document.data, error)
        made = isinstance(error["input"], dict) and not isinstance(_value_at(document.data, path), dict)
        if made and error["type"].endswith("_type"):
            continue  # a mapping that was made on the way to the model; what is wrong inside is told where it stands
        by_place.setdefault((path, at_key), Misfit(path, at_key)).errors.append(error)
    paths = [path for path, _ in by_place]

    def beside_the_point(misfit: Misfit) -> bool:
        deeper = any(len(path) > len(misfit.path) and path[: len(misfit.path)] == misfit.path for path in paths)
        return deeper and bool(misfit.path) and all(kind.endswith("_type") for kind in misfit.kinds)

    return [misfit for misfit in by_place.values() if not beside_the_point(misfit)]


def _path(data: Any, error: Mapping[str, Any]) -> tuple[FieldPath, bool]:
    """Where in the file an error is: its location without what names members of unions."""
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
    """`judge.milestone: value` reached the model as a mapping below `judge`; the file has it in one line."""
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


def _missing(model: type[BaseModel], document: Document, path: FieldPath, unknown: set[FieldPath]) -> Problem:
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


def _unknown(model: type[BaseModel], document: Document, path: FieldPath, missing: set[FieldPath]) -> Problem:
    name = str(path[-1])
    known = sorted({field for found in models_at(model, path[:-1]) for field in fields(found)})
    above = field_name(path[:-1])
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
