"""The small registry of `registry_files` as a folder, and as what is built of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

from evalcore.registry.registry import Registry, build
from tests.unit.evalcore.registry.registry_files import TODAY, parsed_registry, registry

Changes = Mapping[str, str | None]


def written(folder: Path, changes: Changes | None = None) -> Path:
    """The registry's root below a folder; what lay there of an earlier registry and is in this one is overwritten."""
    root = folder / "configs"
    for name, content in registry(changes).files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.resolve().write_bytes(content)
    return root


def rewritten(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def built(changes: Changes | None = None, today: date = TODAY) -> Registry:
    found, findings = parsed_registry(changes, today)
    assert findings == []
    return build(found)
