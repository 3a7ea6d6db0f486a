"""What Rampgate asks of a cluster. Every outcome is a value, a timeout too: nothing here raises for a cluster."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from evalcore.remediation.objects import Object, Why

LARGEST_ANSWER: Final = 2_000_000
"""Bytes that are read of one object."""


@dataclass(frozen=True)
class Unread:
    """Why an object is not there to read; `detail` for a person, without an object's texts or a key."""

    why: Why
    detail: str = ""


class Cluster(Protocol):
    """Gets, watches, applies and deletes objects in a namespace."""

    async def get(self, kind: str, namespace: str, name: str) -> Object | Unread:
        """Returns the object; of an answer at most LARGEST_ANSWER bytes are read."""
        ...

    def watch(self, kind: str, namespace: str) -> AsyncGenerator[tuple[str, Object] | Unread, None]:
        """Yields all objects of the kind, then each change (`ADDED`, `MODIFIED`, `DELETED`, object); an `Unread` for
        each time that the API could not be followed, after which it begins again with all objects by itself. An object
        that is too large is passed over. One connection."""
        ...

    async def labelled(self, kind: str, namespace: str, label: tuple[str, str]) -> Sequence[Object] | Unread:
        """Returns the objects of the kind that bear this label with this value."""
        ...

    async def apply(self, manifest: Object) -> Object | Unread:
        """Creates the object or changes it; returns it as the cluster has it."""
        ...

    async def delete(self, kind: str, namespace: str, name: str) -> Unread | None:
        """Deletes the object and its dependents; None once it is gone, or was not there."""
        ...

    async def close(self) -> None: ...
