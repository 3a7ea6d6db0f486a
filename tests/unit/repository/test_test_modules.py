"""What tests share has a module of its own, so that it is found by its name and no test runs for another's sake."""

from __future__ import annotations

import re

from tests.root import ROOT

IMPORT = re.compile(r"^(?:from|import) tests[\w.]*\.test_\w+", re.M)


def test_no_test_imports_another_test_module() -> None:
    found = {str(file.relative_to(ROOT)): IMPORT.findall(file.read_text()) for file in (ROOT / "tests").rglob("*.py")}
    assert len(found) > 200
    assert {file: imports for file, imports in found.items() if imports} == {}
