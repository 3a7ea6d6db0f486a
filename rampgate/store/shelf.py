"""What a store keeps its values on: a file, or objects in S3.

A value is bytes here; seals are not known. Names are `<kind>:<key>`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol


class Shelf(Protocol):
    """Its methods raise Unavailable. They may be called from one event loop after another."""

    @property
    def shown(self) -> str:
        """Where it is, without a password."""
        ...

    async def read(self, names: Sequence[str]) -> list[bytes | None]:
        """The values in the order of the names, None for what is not there."""
        ...

    async def put(self, name: str, value: bytes, wrong: bytes | None) -> bytes | None:
        """Puts the value there unless the name has another one than `wrong`; returns the one that it has, None where
        ours was put."""
        ...

    async def beginning(self, start: str) -> list[tuple[str, bytes]]:
        """The values whose name begins so, in the order of the names' bytes."""
        ...

    async def use(self, names: Sequence[str]) -> None:
        """Notes that these are used today, as reading them does."""
        ...

    async def forget(self, needed: Callable[[], Awaitable[Sequence[str] | None]]) -> None:
        """Takes away what was not used for as many days as values are kept, except for what is `needed`. That is asked
        where there is something to take; where it returns None, all stays."""
        ...

    def close(self) -> None:
        """Returns once all that was put is there."""
        ...


def unusable(shown: str, why: object) -> str:
    return f"the store {shown} can't be used: {why}"
