"""A YAML file as data with the place of every field. No anchors, no merge keys, no tags, no duplicate keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Place = tuple[int, int]
"""Line and column, from 1; (0, 0) for none."""
FieldPath = tuple[str | int, ...]
ModelT = TypeVar("ModelT")


@dataclass(frozen=True)
class Document:
    """`places`: where each field's key (or list item) stands."""

    file: str
    data: Any
    places: Mapping[FieldPath, Place] = field(default_factory=dict)

    def at(self, path: FieldPath) -> Place:
        """The place of a field, or of the nearest field above it that is there."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return (1, 1) if self.places else (0, 0)


@dataclass(frozen=True)
class Parsed(Generic[ModelT]):
    """A file that fits its model."""

    document: Document
    model: ModelT
