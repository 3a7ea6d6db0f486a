"""Says where a store is: a file or S3, as `--store` and the setting `suite_store` name it; and opens it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agents.ports import Unavailable
from rampgate.console import Failure
from rampgate.settings import Settings, revealed
from rampgate.store.sealed import SealedStore
from rampgate.store.shelf import Shelf
from rampgate.store.sqlite_file import DAYS, FileShelf
from schemas.settings import SENTINEL_SCHEMES

REDIS: Final = ("redis", "rediss", *SENTINEL_SCHEMES)
BUCKET: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([^\s?#]*))?")


@dataclass(frozen=True)
class Place:
    """Where a store is: the path of a file, or an S3 URL; with the secret of its seals, and how many days a file keeps
    what is not used."""

    where: str = field(repr=False)
    secret: bytes = field(default=b"", repr=False)
    days: int = DAYS

    @property
    def exists(self) -> bool:
        """Whether there may be something to read."""
        return "://" in self.where or Path(self.where).is_file()

    def opened(self) -> SealedStore:
        """The store, its file made where there is none. Raises Unavailable."""
        return SealedStore(self._shelf(), self.secret)

    def _shelf(self) -> Shelf:
        if self.where.startswith("s3://"):
            from rampgate.store.s3_objects import S3Shelf

            bucket, _, prefix = self.where.removeprefix("s3://").partition("/")
            return S3Shelf(bucket, prefix.strip("/"))
        file = Path(self.where)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unavailable(f"{file.parent}: can't be made: {error.strerror or error}") from error
        return FileShelf(file, self.days)


def place_of(named: str | None, beside: Path, settings: Settings) -> Place:
    """The place named, else that of the settings, else the file beside the suite. Raises Failure, without a word of a
    URL, since it may hold a password."""
    where = named or settings.suite_store or str(beside)
    try:
        _check(where)
    except ValueError as error:
        raise Failure(f"{'--store' if named else 'suite_store'}: {error}") from error
    return Place(where, (revealed(settings.seal_key) or "").encode(), settings.suite_keep_days)


def _check(where: str) -> None:
    scheme, found, _ = where.partition("://")
    if found and scheme in REDIS:
        raise ValueError(
            "must be the path of a file or s3://bucket/prefix: Redis is no store of suites any more; copy its keys "
            "once, as docs/suite.md says under `A store that machines share`"
        )
    if found and scheme != "s3":
        raise ValueError("must be the path of a file or s3://bucket/prefix")
    if found and BUCKET.fullmatch(where) is None:
        raise ValueError("must be s3://bucket or s3://bucket/prefix")
