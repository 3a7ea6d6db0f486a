"""Finds what a prompt fork has copied from items: a prompt that holds its test's questions or answers passes it for no
reason, and texts of users do not belong into a prompt (PF-9 FR-9). Pure.

It compares runs of words, whatever they say: no list of words that look bad.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

RUN = 6
"""So many words in a row that an item has too, and the current prompt has not, are copied."""
SHORTEST = 3
"""A text of fewer words than RUN is copied where all of it is; one of fewer than these is said by chance."""
DIGITS = 5
"""A number of so many digits, such as of an order or an account, is copied by itself."""
_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
"""Scripts that put no space between words are read sign by sign."""


def words(text: str) -> list[str]:
    """Returns the words of a text as they are read: without case, accents, widths and signs that show nothing."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    kept = "".join(one for one in plain if unicodedata.category(one) not in ("Mn", "Me", "Cf"))
    return _WORD.findall(unicodedata.normalize("NFKC", kept))


def texts_of(value: Any) -> Iterator[str]:
    """Yields every text in an item, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts_of(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from texts_of(inner)


class Items:
    """The runs of words of all items' texts, made once for all forks."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._runs: dict[int, set[tuple[str, ...]]] = {}
        self._numbers: set[str] = set()
        for text in texts:
            said = words(text)
            if len(said) >= SHORTEST:
                size = min(RUN, len(said))
                self._runs.setdefault(size, set()).update(runs(said, size))
            self._numbers.update(word for word in said if _is_number(word))

    def copied(self, fork: str, current: str) -> tuple[str, ...]:
        """Returns the first run of words that the fork has from an item and not from the current prompt; empty where
        there is none."""
        said, had = words(fork), words(current)
        for word in said:
            if word in self._numbers and word not in had:
                return (word,)
        for size, known in sorted(self._runs.items(), reverse=True):
            before = set(runs(had, size))
            for run in runs(said, size):
                if run in known and run not in before:
                    return run
        return ()


def runs(said: list[str], size: int) -> Iterator[tuple[str, ...]]:
    """Yields each run of so many words."""
    return zip(*(said[start:] for start in range(size)), strict=False)


def _is_number(word: str) -> bool:
    return sum(one.isdecimal() for one in word) >= DIGITS
