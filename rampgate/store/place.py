"""Says where a store is: a file, Redis or S3, as `--store` and the setting `suite_store` name it; and opens it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agents.ports import Unavailable
from rampgate.console import Failure
from rampgate.settings import URL_PASSWORD, Settings, hide_password, revealed, usable_url
from rampgate.store.sealed import SealedStore
from rampgate.store.shelf import Shelf
from rampgate.store.sqlite_file import FileShelf
from schemas.settings import SENTINEL_SCHEMES, in_the_clear, read_sentinel_url

REDIS: Final = ("redis", "rediss", *SENTINEL_SCHEMES)
BUCKET: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([^\s?#]*))?")


@dataclass(frozen=True)
class Place:
    """Where a store is: the path of a file, or a URL; with the secret of its seals, and the prefix of keys in Redis."""

    where: str = field(repr=False)
    secret: bytes = field(default=b"", repr=False)
    prefix: str = "rg:"

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
        if "://" in self.where:
            from rampgate.store.redis_keys import RedisShelf

            return RedisShelf(self.where, self.prefix, hide_password(self.where))
        file = Path(self.where)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Unavailable(f"{file.parent}: can't be made: {error.strerror or error}") from error
        return FileShelf(file)


def place_of(named: str | None, beside: Path, settings: Settings) -> Place:
    """The place named, else that of the settings, else the file beside the suite. Raises Failure, without a word of a
    URL, since it may hold a password."""
    if named is not None and not named.startswith("s3://") and URL_PASSWORD.search(named):
        raise Failure(
            "--store: suite_store: every user of this machine can read a command line, so no password may stand there: "
            "give it in RAMPGATE_SUITE_STORE, or in rampgate.toml"
        )
    where = named or settings.suite_store or str(beside)
    try:
        _check(where, settings)
    except ValueError as error:
        raise Failure(f"{'--store' if named else 'suite_store'}: {error}") from error
    return Place(where, (revealed(settings.seal_key) or "").encode(), settings.redis_prefix)


def _check(where: str, settings: Settings) -> None:
    scheme, found, _ = where.partition("://")
    if not found:
        return
    if scheme == "s3":
        if BUCKET.fullmatch(where) is None:
            raise ValueError("must be s3://bucket or s3://bucket/prefix")
    elif scheme not in REDIS:
        raise ValueError("must be the path of a file, redis://…, rediss://… or s3://bucket/prefix")
    elif read_sentinel_url(where) is None:
        usable_url(where, "redis", "rediss")
    if URL_PASSWORD.search(where) and in_the_clear(where) and not settings.allow_plaintext:
        raise ValueError(
            "a password would be sent in the clear to another machine; use rediss://, or, knowingly, set "
            "allow_plaintext"
        )
