"""Near misses: which known word was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like this one, if one is; case and `-` for `_` make no difference."""
    by_key = {_key(name): name for name in sorted(known)}
    found = get_close_matches(_key(word[:200]), by_key, n=1, cutoff=0.6)
    return by_key[found[0]] if found else None


def near_miss(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or "" when nothing is near. To stand behind a message."""
    found = nearest(word, known)
    return "" if found is None else f"; did you mean {found!r}?"


def _key(word: str) -> str:
    return word.strip().lower().replace("-", "_")
