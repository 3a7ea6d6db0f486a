"""Reads a registry's files from disk, and the day from the clock. An edge: it parses nothing."""

from __future__ import annotations

import os
import os.path
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

from evalcore.registry.files import COMPONENTS, MANIFEST, OF_A_VERTICAL, SPECS, TOP, VERTICALS, Tree
from evalcore.yaml.loader import MAX_BYTES

__all__ = ["Tree", "default_root", "read", "read_tree", "today"]

_LIKE_YAML = {".yaml", ".yml", ".json"}
_AT_THE_TOP = {name.replace("-", "_").removesuffix(".yaml") for name in TOP}
_OF_A_VERTICAL = {name.replace("-", "_").removesuffix(".yaml") for name in OF_A_VERTICAL}


def read_tree(root: Path) -> Tree:
    """Reads the registry at `root`. Raises NotADirectoryError when `root` is no folder.

    It also reads files that only have a wrong name, so that validation can tell them from unrelated files. A link out
    of the registry is refused unread, since messages quote what is wrong; but for the manifest's: it is written
    through.
    """
    if not root.is_dir():
        raise NotADirectoryError(f"{root.absolute()}: no such folder")
    files: dict[str, bytes] = {}
    refused: dict[str, str] = {}
    home, around = (Path(os.path.realpath(one)) for one in (root, root.absolute().parent))
    for name in _names(root):
        path = Path(os.path.normpath(root / name))
        try:
            inside = Path(os.path.realpath(path)).is_relative_to(around if name.startswith("..") else home)
            if not inside and name != MANIFEST:
                refused[name] = "is a link that leads out of the registry: put the file itself there"
                continue
            files[name] = read(path)
        except FileNotFoundError:
            refused[name] = "is a link that leads nowhere, or was removed just now"
        except OSError as error:
            refused[name] = f"can't be read: {error.strerror or error}"
    return Tree(root, files, refused)


def read(path: Path) -> bytes:
    """Reads a file, at most one byte more than it may have. Raises OSError, also for what is no file."""
    if path.exists() and not path.is_file():
        raise IsADirectoryError(None, "is no file", str(path))
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def default_root() -> Path:
    """Returns the registry of calls that name none."""
    return Path(os.environ.get("RAMPGATE_CONFIGS", "configs"))


def today() -> date:
    """Returns today in UTC, where the registry's days begin and end."""
    return datetime.now(UTC).date()


def _names(root: Path) -> Iterator[str]:
    yield from (name for name in _listed(root) if _stem(name) in _AT_THE_TOP)
    yield from (f"verticals/{name}" for name in _listed(root / "verticals"))
    yield from (f"rules/{name}" for name in _listed(root / "rules", depth=4))
    yield from (f"{SPECS}/{name}" for name in _listed(root / SPECS, depth=4))
    beside = Path(os.path.normpath(root / VERTICALS))
    for vertical in _folders(beside):
        for name in _listed(beside / vertical / "eval"):
            if _stem(name) in _OF_A_VERTICAL:
                yield f"{VERTICALS}/{vertical}/eval/{name}"
    components = Path(os.path.normpath(root / COMPONENTS))
    yield from (f"{COMPONENTS}/{name}" for name in _listed(components, depth=4, suffixes={".xml"}))


def _stem(name: str) -> str:
    return name.rpartition(".")[0].replace("-", "_").lower()


def _folders(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if _is_folder(entry) and not entry.name.startswith("."))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Tells whether the entry is a folder. A link that leads in a circle is none; reading it says what it is."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _listed(folder: Path, depth: int = 1, suffixes: set[str] = _LIKE_YAML) -> Iterator[str]:
    """Yields names in a folder, those in its subfolders with `/`, without names that begin with a dot."""
    if depth == 0 or not folder.is_dir():
        return
    for entry in sorted(os.scandir(folder), key=lambda found: found.name):
        if entry.name.startswith("."):
            continue
        if _is_folder(entry):
            yield from (f"{entry.name}/{name}" for name in _listed(folder / entry.name, depth - 1, suffixes))
        elif Path(entry.name).suffix.lower() in suffixes:
            yield entry.name
