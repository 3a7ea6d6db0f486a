"""Specs as tests write them, read without a disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from evalcore.specs.merging import CantInclude
from evalcore.specs.reading import SpecReading, read_spec

FILE = "agents/agentci_spec.yaml"


def reading(text: str | bytes, files: Mapping[str, str] | None = None) -> SpecReading:
    """The spec with the `files` that it may include, by the text that includes them."""

    def fetch(file: str, target: str) -> tuple[str, bytes]:
        if target not in (files or {}):
            raise CantInclude("it is not there", "write the file")
        return target, (files or {})[target].encode()

    return read_spec(FILE, text if isinstance(text, bytes) else text.encode(), fetch)


def of(data: Mapping[str, Any]) -> SpecReading:
    """The spec that has this content."""
    return reading(yaml.safe_dump(dict(data), allow_unicode=True, sort_keys=False))


def spec(*queries: Mapping[str, Any], **root: Any) -> dict[str, Any]:
    return {"agent": "rag-agent", **root, "queries": list(queries)}


def query(text: str = "How?", **fields: Any) -> dict[str, Any]:
    return {"query": text, **fields}
