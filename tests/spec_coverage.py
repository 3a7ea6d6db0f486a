"""Which tests hold which clause of PC5 and PF-9, which box of AgentCI 2.0 and which point of the remediation document's
test plan, read from the tests themselves (PF-9 NFR-5): a test names its clauses in its name (`test_pc5_ac6_…`), its
docstring or the comment above it (`AgentCI Step 2 box 1`, `Remediation test plan 3`), a file or a benchmark in its
docstring.

`.venv/bin/python -m tests.spec_coverage` writes `docs/spec-coverage.md`; `make docs` does, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.mutants.declared import Mutant, mutants
from tests.spec_clauses import CLAUSES, NOT_YET, Clause, Due

TESTS: Final = Path(__file__).parent
PAGE: Final = TESTS.parent / "docs" / "spec-coverage.md"
HEAD: Final = """# Which tests hold which clause

Made by `make docs` from the names and docstrings of the tests. A test fails where one of them is gone, or where a
clause that is due has none (PF-9 NFR-5). The last column says how a clause was broken on purpose (`tests/mutants/`,
`make mutants`): each time the tests beside it fail."""
_DOCUMENT: Final = re.compile(r"\b(PC-?5|PF-?9|AgentCI|Remediation)\b")
_NEXT: Final = re.compile(
    r"(?:[\s,;/]|\band\b|\bor\b)*"
    r"(Step [\d.]+ box \d+|test plan \d|§\d+(?:\.\d+)?|N?FR-\d+|AC-\d+|R-\d+|Decisions? \d+|\d+(?![\d.]))"
)
_IN_A_NAME: Final = re.compile(r"(?<![a-z])(pc5|pf9)((?:_(?:(?:n?fr|ac|r|decision)_?\d+|\d+_\d+)(?![a-z\d]))+)")
_PART: Final = re.compile(r"_(?:(nfr|fr|ac|r|decision)_?(\d+)|(\d+)_(\d+))")
_ANY: Final = re.compile(r"(PC|PF)-?[59]\b|pc5|pf9|AgentCI|Remediation")
_NUMBER: Final = re.compile(r"\d+")


def clauses_in(text: str) -> set[str]:
    """`PC5 FR-8, FR-14; PF-9 Decisions 17 and 18` as titles, one by one."""
    found = set()
    for document in _DOCUMENT.finditer(text):
        title = {"PC5": "PC5", "PF9": "PF-9"}.get(document[0].replace("-", ""), document[0])
        at, decision = document.end(), False
        while following := _NEXT.match(text, at):
            name = following.group(1)
            if _NUMBER.fullmatch(name):
                if not decision:
                    break
                name = f"Decision {name}"
            decision = name.startswith("Decision")
            found.add(f"{title} {name.replace('Decisions', 'Decision')}")
            at = following.end()
    return found


def clauses_in_name(name: str) -> set[str]:
    """`test_pc5_ac6_9_5_…` as titles, PC5 AC-6 and PC5 §9.5."""
    found = set()
    for document, parts in _IN_A_NAME.findall(name):
        title = "PC5" if document == "pc5" else "PF-9"
        for kind, number, section, part in _PART.findall(parts):
            if section:
                found.add(f"{title} §{section}.{part}")
            else:
                found.add(f"{title} {'Decision ' if kind == 'decision' else f'{kind.upper()}-'}{number}")
    return found


def named_by(path: Path) -> Iterator[tuple[str, str]]:
    """(clause, test): the test is `file::function`, or the file for what its own docstring names."""
    source = path.read_text()
    if not _ANY.search(source):
        return
    name, lines, tree = path.relative_to(TESTS).as_posix(), source.splitlines(), ast.parse(source)
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
    ]
    for function in functions:
        first = min([function.lineno, *(one.lineno for one in function.decorator_list)]) - 1
        above = first
        while above and lines[above - 1].startswith("#"):
            above -= 1
        text = "\n".join([*lines[above:first], ast.get_docstring(function) or ""])
        for clause in clauses_in(text) | clauses_in_name(function.name):
            yield clause, f"{name}::{function.name}"
    for clause in clauses_in(ast.get_docstring(tree) or "") if functions else ():
        yield clause, name


@cache
def held() -> dict[str, list[str]]:
    """Clause -> tests that name it; a file only where none of its functions does."""
    found: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for clause, test in named_by(path):
            found.setdefault(clause, set()).add(test)
    for path in sorted((TESTS.parent / "benchmarks").glob("*.py")):
        for clause in clauses_in(ast.get_docstring(ast.parse(path.read_text())) or ""):
            found.setdefault(clause, set()).add(f"benchmarks/{path.name}")
    return {
        clause: sorted(one for one in tests if "::" in one or not any(other.startswith(f"{one}::") for other in tests))
        for clause, tests in found.items()
    }


@cache
def broken() -> dict[str, list[Mutant]]:
    """Clause -> the mutants that break it."""
    found: dict[str, list[Mutant]] = {}
    for mutant in mutants():
        for clause in mutant.clauses:
            found.setdefault(clause, []).append(mutant)
    return found


def page() -> str:
    by, lines = held(), [HEAD]
    for document in dict.fromkeys(clause.document for clause in CLAUSES):
        lines += ["", f"## {document}", "", "| clause | demands | held by | broken by |", "| --- | --- | --- | --- |"]
        lines += [_row(clause, by) for clause in CLAUSES if clause.document == document]
    return "\n".join([*lines, ""])


def _row(clause: Clause, by: dict[str, list[str]]) -> str:
    tests = "<br>".join(f"`{test}`" for test in by.get(clause.title, []))
    held_by = tests or ("not yet" if clause.due is Due.LATER else "nothing")
    words = clause.words + (f"<br>not yet: {NOT_YET[clause.title]}" if clause.title in NOT_YET else "")
    tried = "<br>".join(mutant.what for mutant in broken().get(clause.title, []))
    return f"| {clause.name} | {words} | {held_by} | {tried} |"


if __name__ == "__main__":
    PAGE.write_text(page())
