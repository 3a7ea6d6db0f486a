"""Draws from a seed: the same seed gives the same draws, on any machine and version. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A sequence of draws."""

    def __init__(self, seed: str) -> None:
        self._seed, self._drawn = seed, 0

    def number(self, below: int) -> int:
        """Returns a number from 0 up to, not including, `below`."""
        self._drawn += 1
        said = blake2b(f"{self._seed}/{self._drawn}".encode(errors="replace"), digest_size=8).digest()
        return int.from_bytes(said, "big") % below

    def choice(self, among: Sequence[T]) -> T:
        return among[self.number(len(among))]

    def coin(self) -> bool:
        return self.number(2) == 1
