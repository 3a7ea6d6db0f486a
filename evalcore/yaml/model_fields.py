"""Looks up which fields a model allows at a place of a file, and where an empty value means something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from evalcore.yaml.source_locations import FieldPath

_MAY_HOLD_NOTHING = (dict, list, type(None))


def models_at(model: type[BaseModel], path: FieldPath) -> list[type[BaseModel]]:
    """Returns the models that a value at this path may have."""
    found: list[Any] = [model]
    for part in path:
        found = [inner for outer in found for inner in _inside(outer, part)]
    return [plain for outer in found for plain in _plain(outer) if _is_model(plain)]


@cache
def fields(model: type[BaseModel]) -> Mapping[str, Any]:
    """Returns each field's annotation by the name that files write."""
    return {info.alias or name: info.annotation for name, info in model.model_fields.items()}


@cache
def inner_fields(model: type[BaseModel]) -> Mapping[str, list[str]]:
    """Returns, for field names one level down, the dotted paths at which they belong."""
    found: dict[str, list[str]] = {}
    for outer, annotation in fields(model).items():
        for inner in [plain for plain in _plain(annotation) if _is_model(plain)]:
            for name in fields(inner):
                if name not in fields(model):
                    found.setdefault(name, []).append(f"{outer}.{name}")
    return found


def nulls(annotation: Any, value: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Yields the paths of fields that are present and empty. A free mapping (`Any` inside) may hold empty values."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(inner, _MAY_HOLD_NOTHING):
                continue
            if inner is None and _is_field_of_any(annotation, key):
                yield (*path, key)
            for found in _inside(annotation, key):
                yield from nulls(found, inner, (*path, key)) if inner is not None else _empty(found, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            if not isinstance(inner, _MAY_HOLD_NOTHING):
                continue
            for found in _inside(annotation, place):
                yield from nulls(found, inner, (*path, place)) if inner is not None else _empty(found, (*path, place))


def _empty(annotation: Any, path: FieldPath) -> Iterator[FieldPath]:
    if annotation is not Any:
        yield path


def _is_field_of_any(annotation: Any, key: str) -> bool:
    """Tells whether the key is a field of a model. Such a field is never empty: an author who wants none leaves it
    out."""
    return any(key in fields(plain) for plain in _plain(annotation) if _is_model(plain))


def _inside(annotation: Any, part: str | int) -> Iterator[Any]:
    for plain in _plain(annotation):
        arguments = get_args(plain)
        if _is_model(plain):
            if part in fields(plain):
                yield fields(plain)[str(part)]
        elif get_origin(plain) is dict and isinstance(part, str):
            yield arguments[1]
        elif get_origin(plain) in (list, tuple) and isinstance(part, int):
            yield arguments[0]


def _plain(annotation: Any) -> Iterator[Any]:
    """Yields the members of an annotation's union, without `Annotated`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _plain(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _plain(member)
    else:
        yield annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
