"""Keeps judges' answers, candidates' answers, traces and runs on a shelf, each value sealed.

A seal is made with the secret of trusted jobs, so that a pull request's job can't put answers into the store that they
read; without a secret a seal finds damage alone. What has no valid seal counts as missing, is counted, and is replaced.
The first value of a key stands, so that two runs at once use one answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from agents.ports import Unavailable
from rampgate.store.shelf import Shelf
from schemas.seals import Seal

UNSIGNED: Final = b"rampgate suite without a secret"


class SealedStore:
    """The values on one shelf, by kinds. Close it when no call is under way."""

    def __init__(self, shelf: Shelf, secret: bytes = b"") -> None:
        self._shelf, self._secret = shelf, secret or UNSIGNED
        self.refused = 0
        """Values without a valid seal that were met."""
        self.signed = bool(secret)
        """Whether its seals are those of trusted jobs."""
        self.failures: list[str] = []
        """Why something could not be read or kept."""

    def kind(self, name: str, largest: int) -> Kept:
        """Returns the values of one kind, each of `largest` bytes at most."""
        seal = Seal(self._secret).purpose(b"rampgate suite " + name.encode() + b"\0")
        return Kept(self, self._shelf, name, seal, largest)

    async def forget(self, needed: Callable[[], Awaitable[Sequence[str] | None]]) -> None:
        """See `Shelf.forget`. Raises Unavailable."""
        with self.told():
            await self._shelf.forget(needed)

    def close(self) -> None:
        """Returns once all that was put is kept; `failures` says what was not."""
        with suppress(Unavailable), self.told():
            self._shelf.close()

    @contextmanager
    def told(self) -> Iterator[None]:
        """Notes why the shelf can't be used."""
        try:
            yield
        except Unavailable as error:
            if str(error) not in self.failures[-1:]:
                self.failures.append(str(error))
            raise


class Kept:
    """Values of one kind in a store (evalcore.scoring's `ScoreCache`, among others)."""

    def __init__(self, store: SealedStore, shelf: Shelf, name: str, seal: Seal, largest: int) -> None:
        self._store, self._shelf, self._name = store, shelf, name
        self._seal, self._largest = seal, largest

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """The values in the order of the keys, None for what is not kept. Raises Unavailable."""
        names = [self._key(key) for key in keys]
        with self._store.told():
            held = await self._shelf.read(names)
        return [self._opened(name, value) for name, value in zip(names, held, strict=True)]

    async def put(self, key: str, value: bytes) -> bytes | None:
        """Keeps the value unless the key has one; returns the earlier one, None where there was none. What is too
        large is not kept. Raises Unavailable."""
        if len(value) > self._largest:
            return None
        name = self._key(key)
        ours, wrong = self._seal.sealed(name, value), None
        while True:
            with self._store.told():
                earlier = await self._shelf.put(name, ours, wrong)
            if earlier is None or (opened := self._opened(name, earlier)) is not None:
                return None if earlier is None else opened
            wrong = earlier

    async def use(self, keys: Sequence[str]) -> None:
        """Notes that these are used today, as reading them does. Raises Unavailable."""
        with self._store.told():
            await self._shelf.use([self._key(key) for key in keys])

    async def under(self, start: str) -> dict[str, bytes]:
        """The values whose key begins so, by key, in the keys' order. Raises Unavailable."""
        with self._store.told():
            found = await self._shelf.beginning(self._key(start))
        opened = [(name, self._opened(name, value)) for name, value in found]
        return {name[len(self._name) + 1 :]: value for name, value in opened if value is not None}

    def _key(self, key: str) -> str:
        return f"{self._name}:{key}"

    def _opened(self, name: str, value: bytes | None) -> bytes | None:
        if value is None:
            return None
        opened = self._seal.opened(name, value)
        if opened is None:
            self._store.refused += 1
        return opened
