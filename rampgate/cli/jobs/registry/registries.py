"""Finds the registry that a command names, reads its files, and builds the registry from them."""

from __future__ import annotations

import os.path
from pathlib import Path

from evalcore.registry import disk
from evalcore.registry.files import MANIFEST, Tree
from evalcore.registry.registry import Registry, build
from evalcore.validation import checked
from evalcore.yaml.findings import ValidationResult
from rampgate.console import Failure
from rampgate.registry.verticals import require_folder
from rampgate.settings_sources import load_settings


def root_of(configs: Path | None) -> Path:
    """The registry's folder: the one named, or the one in the settings."""
    return load_settings({"configs": configs}).configs


def tree_of(root: Path) -> Tree:
    """The files of a registry as they are on disk. Raises Failure where the folder is missing or can't be listed."""
    require_folder(root)
    try:
        return disk.read_tree(root)
    except OSError as error:
        raise Failure(f"{error.filename or root}: {error.strerror or error}") from error


def read_registry(tree: Tree) -> tuple[Registry | None, ValidationResult]:
    """The registry that a tree gives and what validation found; None where it found an error."""
    files, findings = checked(tree, disk.today())
    result = ValidationResult.of(tree.root, findings)
    return (build(files) if result.valid else None), result


def registry_of(path: Path) -> Path | None:
    """The folder of the registry that a path belongs to: itself, or the one around its `rules` or `verticals`."""
    for up in ("", "..", "../..", "../../.."):
        folder = Path(os.path.normpath(path / up))
        inside = absolute(path).relative_to(absolute(folder)).parts
        if not folder.is_dir() or not ((folder / "rules").is_dir() or (folder / MANIFEST).is_file()):
            continue
        if len(inside) < 2 or inside[0] in ("rules", "verticals"):
            return folder
    return None


def absolute(path: Path) -> Path:
    """The absolute path without `..`; links are not followed."""
    return Path(os.path.normpath(path.absolute()))
