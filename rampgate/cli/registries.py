"""Which registry a command is about, and its files as they are on disk."""

from __future__ import annotations

from pathlib import Path

from evalcore.registry import disk
from evalcore.registry.files import Tree
from rampgate.console import Failure
from rampgate.settings import load_settings


def root_of(configs: Path | None) -> Path:
    return load_settings({"configs": configs}).configs


def tree_of(root: Path) -> Tree:
    """Raises Failure where there is no such folder, or it can't be listed."""
    try:
        return disk.read_tree(root)
    except NotADirectoryError as error:
        raise Failure(f"{error}; name the registry's folder with --configs or RAMPGATE_CONFIGS") from error
    except OSError as error:
        raise Failure(f"{error.filename or root}: {error.strerror or error}") from error
