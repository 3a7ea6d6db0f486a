"""The pages of faults, of hostile input and of how to game a verdict name one test a row, and each is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.root import ROOT

PAGES = [name for name in ("faults.md", "hostile-input.md", "gaming.md") if (ROOT / "docs" / name).is_file()]
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows(page: Path) -> list[list[str]]:
    """The cells of each row below the head."""
    lines = [line for line in page.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("page", PAGES)
def test_each_row_names_one_test_that_exists_and_serves_no_other_row(page: str) -> None:
    seen: set[tuple[str, str]] = set()
    found = rows(ROOT / "docs" / page)
    assert found
    for row in found:
        assert len(row) == 3, row
        named = TEST.findall(row[2])
        assert len(named) == 1, f"one test a row, spelled `tests/….py::test_…`: {row[2]}"
        file, test = named[0]
        path = ROOT / file
        assert path.is_file(), f"{file} does not exist"
        assert re.search(rf"^(async )?def {test}\(", path.read_text(), re.MULTILINE), f"{file} has no {test}"
        assert named[0] not in seen, f"{test} serves two rows"
        seen.add(named[0])
