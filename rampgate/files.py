"""Changes files: replaced whole or not at all, or added to; regular ones only; and folders held by one process."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rampgate.console import Failure


@contextmanager
def writing(place: object) -> Iterator[None]:
    """Raises Failure, which names the place, for an OSError of what is done within."""
    try:
        yield
    except OSError as error:
        raise Failure(f"{place}: can't be written: {error.strerror or error}") from error


def replace_file(path: Path, content: str | bytes, option: str = "") -> None:
    """Write the content as the file, as `replacing` does. Raises Failure, which names the `option` of the file."""
    with writing(f"{option} {path}".lstrip()), replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def append_file(path: Path, content: bytes, option: str = "") -> None:
    """Write the content at the file's end, which is there then. Raises Failure, which names the `option` of the
    file."""
    with writing(f"{option} {path}".lstrip()):
        require_regular(path)
        with path.open("ab") as file:
            file.write(content)


@contextmanager
def replacing(path: Path, held: Path | None = None) -> Iterator[IO[bytes]]:
    """A file to write to, which becomes the one at `path` when the context ends well, keeping the mode of an existing
    one and following a link. It is a new one; or `held`, in the same folder, which may have a beginning already and
    stays when the context ends with an error.

    Raises OSError, also for a read-only file, which a rename would replace nevertheless, and for what is no file.
    """
    target = Path(os.path.realpath(path))
    require_regular(target)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    if not mode & 0o222:
        raise PermissionError(None, "is read-only", str(path))
    # The registry reads no file whose name begins with a dot.
    if held is None:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    else:
        handle, name = os.open(held, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), str(held)
    try:
        with os.fdopen(handle, "r+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(target)
    except BaseException:
        if held is None:
            Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds a folder for this process. Raises OSError: where another process has it, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(errno.EAGAIN, "another run works there; wait for its end", str(folder)) from None
        yield
    finally:
        os.close(handle)


def require_regular(path: Path) -> None:
    """Raises OSError for a device, FIFO, socket or folder: a rename would take its place, and a FIFO without a reader
    would never open."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is no regular file", str(path))


def writable(path: Path) -> bool:
    """Whether a regular file is there or can be: what a report's path is asked before the report costs anything."""
    return path.is_file() or (not path.exists() and path.absolute().parent.is_dir())


def create_files(files: Mapping[Path, str]) -> None:
    """Create files and their folders, overwriting none. Removes those already written where one fails. Raises
    OSError."""
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
