"""The mutants: small changes of the product, each with the tests that must notice it.

A subject is a TOML file in this folder. `tests` at its head serves every mutant that names none of its own; so do
`file` and `clauses`. A mutant replaces `from`, which occurs once in `file`, by `to`. `clauses` are those of PC5 and
PF-9, and boxes of AgentCI, that the product breaks with the change; `docs/spec-coverage.md` lists it beside them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.root import ROOT

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Mutant:
    subject: str
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    clauses: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.subject}: {self.what}"

    def applied(self, root: Path = ROOT) -> str:
        """The file's text with the change. Raises ValueError where what is to be changed does not occur just once."""
        path = root / self.file
        text = path.read_text() if path.is_file() else ""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: its `from` occurs {text.count(self.old)} times in {self.file}")
        return text.replace(self.old, self.new)


def must_compile(path: str, text: str) -> None:
    """Raises SyntaxError for what is no Python, in a file that is to be some."""
    if path.endswith(".py"):
        compile(text, path, "exec")


def subjects() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def mutants(wanted: Sequence[str] = ()) -> list[Mutant]:
    """Those of the subjects named, or all."""
    found = []
    for subject in wanted or subjects():
        page = tomllib.loads((FOLDER / f"{subject}.toml").read_text())
        for one in page["mutant"]:
            tests = one.get("tests") or page["tests"]
            file = one.get("file") or page["file"]
            clauses = one.get("clauses") or page.get("clauses", ())
            found.append(Mutant(subject, one["what"], file, one["from"], one["to"], tuple(tests), tuple(clauses)))
    return found
