"""A file's data with the line and column of every field, for findings to point at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

Place = tuple[int, int]
"""Line and column, from 1; (0, 0) for none."""
FieldPath = tuple[str | int, ...]
ModelT = TypeVar("ModelT")


class Unreadable:
    """Replaces a value that could not be read, such as an alias, and that has a finding already."""

    def __repr__(self) -> str:
        return "<unreadable>"


UNREADABLE: Final = Unreadable()


@dataclass(frozen=True)
class Tagged:
    """A text with a tag that its file may use, such as `!include`."""

    tag: str
    text: str


def field_name(path: FieldPath) -> str:
    """Returns a path as findings write it: `categories.greeting.judges[0]`."""
    parts = (f"[{part}]" if isinstance(part, int) else "." + " ".join(part[:80].split()) for part in path)
    return "".join(parts).removeprefix(".")


@dataclass(frozen=True)
class Document:
    """A file's data. `places`: where each field's key, or list item, begins. `incomplete`: fields below which something
    could not be read, so that nothing below them is called missing. `included`: the files of parts that other files
    have. `moved`: where a part is written in this document that was merged into another."""

    file: str
    data: Any
    places: Mapping[FieldPath, Place] = field(default_factory=dict)
    incomplete: frozenset[FieldPath] = frozenset()
    included: Mapping[FieldPath, str] = field(default_factory=dict)
    moved: Mapping[FieldPath, FieldPath] = field(default_factory=dict)

    def at(self, path: FieldPath) -> Place:
        """Returns the place of a field, or of the nearest field above it that the file has."""
        path = self._written(path)
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return (1, 1) if self.places else (0, 0)

    def source(self, path: FieldPath) -> tuple[str, FieldPath]:
        """Returns the file in which a field is written, and the field's path there."""
        path = self._written(path)
        for length in range(len(path), 0, -1):
            if (file := self.included.get(path[:length])) is not None:
                return file, path[length:]
        return self.file, path

    def _written(self, path: FieldPath) -> FieldPath:
        for length in range(len(path), 0, -1) if self.moved else ():
            if (found := self.moved.get(path[:length])) is not None:
                return (*found, *path[length:])
        return path


@dataclass(frozen=True)
class Parsed(Generic[ModelT]):
    """A file that fits its model."""

    document: Document
    model: ModelT
