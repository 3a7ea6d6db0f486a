"""The linter: everything the documents demand of the files, each demand a named check with its clause."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from evalcore.corpus import Corpus
from evalcore.problems import Problem


@dataclass(frozen=True)
class Check:
    """`name` is kebab-case and stands in every finding; `clause` says where the demand comes from."""

    name: str
    clause: str
    summary: str
    run: Callable[[Corpus], Iterable[Problem]]
