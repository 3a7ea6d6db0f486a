"""Suggests the known name that was probably meant; defines the errors for unknown names that carry it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Returns the known word most like this one, or None; case and `-` for `_` make no difference."""
    by_key = {_key(name): name for name in sorted(known)}
    found = get_close_matches(_key(word[:200]), by_key, n=1, cutoff=0.6)
    return by_key[found[0]] if found else None


def near_miss(word: str, known: Iterable[str]) -> str:
    """Returns `; did you mean 'x'?` to end a message with, or "" when no known word is near."""
    found = nearest(word, known)
    return "" if found is None else f"; did you mean {found!r}?"


def day_until(last: date, today: date, otherwise: str) -> str:
    """Returns the fix for a day that is too late; `otherwise` where the last one that could stand there has passed."""
    return f"write {last} or an earlier day" if last >= today else otherwise


def _key(word: str) -> str:
    return word.strip().lower().replace("-", "_")


class Unknown(KeyError):
    """A name is unknown; the message suggests the one that was probably meant."""

    kind = "name"

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        """`known` is every name there is."""
        super().__init__(name)
        self.name = name
        self.hint = near_miss(str(name), known)

    def __str__(self) -> str:
        return f"no {self.kind} {self.name!r}{self.hint}"


class UnknownJudge(Unknown):
    """No judge of that id."""

    kind = "judge"


class UnknownCategory(Unknown):
    """No category of that name."""

    kind = "category"


class UnknownArchetype(Unknown):
    """No archetype of that name in the manifest."""

    kind = "archetype"
