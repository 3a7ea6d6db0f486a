"""A YAML file as data with the place of every field. No anchors, no merge keys, no tags, no duplicate keys."""

from __future__ import annotations

from dataclasses import replace

from evalcore.composing import compose
from evalcore.decoding import decode
from evalcore.placed import UNREADABLE, Document, FieldPath, Parsed, Place, field_name
from evalcore.problems import Problem

__all__ = ["UNREADABLE", "Document", "FieldPath", "Parsed", "Place", "field_name", "read_yaml"]


def read_yaml(file: str, raw: bytes) -> tuple[Document | None, list[Problem]]:
    """The document and everything that is wrong with it as YAML; no document where nothing could be read.

    A document that comes with problems holds what could be read, so that its other problems can be told as well.
    """
    text, problems, whole = decode(file, raw)
    composed = compose(file, text)
    if not whole:
        # The text ends where it can't be read; what the parser makes of that end is no finding, but where it is.
        return None, [replace(problem, field=field_name(composed.open_at)) for problem in problems]
    return composed.document, [*problems, *composed.problems]
