"""The files of a registry by name, as they lie around its configuration folder."""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

MANIFEST: Final = "evaluation_manifest.yaml"
BASE: Final = "manifest-base.yaml"
OVERRIDES: Final = "enforcement-overrides.yaml"
EXTENSION: Final = "manifest-extension.yaml"
SELECTION: Final = "judge-selection.yaml"
COMPONENTS: Final = "../prompts/components"
VERTICALS: Final = "../specs/verticals"


@dataclass(frozen=True)
class Tree:
    """`files`: content by name, relative to `root` with `/`: `rules/ux_quality.yaml`, `rules/receipts/ux_quality.yaml`,
    `evaluation_manifest.yaml`, `../specs/verticals/receipts/eval/judge-selection.yaml`,
    `../prompts/components/greeting.xml`. Content may end one byte past the limit for a file's size. `refused`: names of
    files that could not be opened, with the reason."""

    root: Path
    files: Mapping[str, bytes]
    refused: Mapping[str, str] = field(default_factory=dict)

    def shown(self, name: str) -> str:
        """How findings call the file: its path from where the root was given."""
        return Path(os.path.normpath(self.root / name)).as_posix()

    def below(self, folder: str, suffix: str = "") -> dict[str, bytes]:
        """The files below a folder, by the name that findings give them."""
        inside = (name for name in sorted(self.files) if name.startswith(f"{folder}/") and name.endswith(suffix))
        return {self.shown(name): self.files[name] for name in inside}

    def with_file(self, name: str, content: bytes) -> Tree:
        return replace(self, files={**self.files, name: content})
