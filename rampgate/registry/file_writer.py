"""Writes registry files whole or not at all: a reader, or a crash, never meets half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Put `text` in the place of a file, or of none, with the mode of what was there; through a link, where it leads.

    Raises PermissionError for a file that is marked read-only, which a rename would not heed, and OSError.
    """
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    if not mode & 0o222:
        raise PermissionError(None, "is read-only", str(path))
    # A name that begins with a dot is nobody's rule file.
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def create_files(files: Mapping[Path, str]) -> None:
    """Write new files, and folders for them, none over one that is there. Where one can't be written, those written
    before it are taken back. Raises OSError."""
    made: list[Path] = []
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                made.append(path)
                file.write(text)
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
