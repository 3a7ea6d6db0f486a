"""The two places of a store, each with a hand in it: a file, and S3's stand-in."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rampgate.store.place import Place
from tests.s3_stand_in import BUCKET, s3_stand_in

PLACES = ("file", "s3")


@dataclass(frozen=True)
class Rig:
    """`plant` puts bytes in the place of a value, `take` takes a value away, by its kind and key. `held` counts the
    values of each kind."""

    where: str
    plant: Callable[[str, str, bytes], None]
    take: Callable[[str, str], None]
    held: Callable[[], Counter[str]]

    def place(self, secret: bytes = b"secret") -> Place:
        return Place(self.where, secret)


@contextmanager
def file_rig(folder: Path) -> Iterator[Rig]:
    file = folder / "store.db"

    def execute(word: str, *values: object) -> Sequence[tuple[str]]:
        with sqlite3.connect(file) as database:
            found: Sequence[tuple[str]] = database.execute(word, values).fetchall()
        database.close()
        return found

    def held() -> Counter[str]:
        keys = execute("SELECT key FROM kept") if file.exists() else ()
        return Counter(key.partition(":")[0] for (key,) in keys)

    yield Rig(
        str(file),
        lambda kind, key, value: execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", f"{kind}:{key}", value) and None,
        lambda kind, key: execute("DELETE FROM kept WHERE key = ?", f"{kind}:{key}") and None,
        held,
    )


@contextmanager
def s3_rig(setenv: Callable[[str, str], None]) -> Iterator[Rig]:
    """`setenv` sets a variable for the test's time."""
    with s3_stand_in() as s3:
        s3.page = 7
        for name, value in s3.environment().items():
            setenv(name, value)
        yield Rig(
            f"s3://{BUCKET}/desk/main",
            lambda kind, key, value: s3.objects.update({f"desk/main/{kind}/{key}": value}),
            lambda kind, key: s3.objects.pop(f"desk/main/{kind}/{key}") and None,
            lambda: Counter(name.split("/")[2] for name in [*s3.objects]),
        )


def rig_of(name: str, folder: Path, setenv: Callable[[str, str], None]) -> AbstractContextManager[Rig]:
    """The rig of one of PLACES."""
    return file_rig(folder) if name == "file" else s3_rig(setenv)
