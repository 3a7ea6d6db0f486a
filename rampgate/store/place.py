"""Says where a store is, as `--store` names it, and opens it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agents.ports import Unavailable
from rampgate.settings import Settings, revealed
from rampgate.store.sealed import SealedStore
from rampgate.store.sqlite_file import FileShelf


@dataclass(frozen=True)
class Place:
    """Where a store is, with the secret of its seals."""

    where: str = field(repr=False)
    secret: bytes = field(default=b"", repr=False)

    @property
    def exists(self) -> bool:
        """Whether there is something to read."""
        return Path(self.where).is_file()

    def opened(self) -> SealedStore:
        """The store, made where there is none. Raises Unavailable."""
        file = Path(self.where)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unavailable(f"{file.parent}: can't be made: {error.strerror or error}") from error
        return SealedStore(FileShelf(file), self.secret)


def place_of(named: str | None, beside: Path, settings: Settings) -> Place:
    """The place named, else the file."""
    return Place(named or str(beside), (revealed(settings.seal_key) or "").encode())
