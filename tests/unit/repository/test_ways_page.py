"""docs/ways.md names files and functions that exist, no more than a newcomer can follow, and no import there climbs."""

from __future__ import annotations

import ast

import pytest

from tests.root import ROOT
from tests.ways import ways

SCORE = "A score's way to the store of traces"
LONGEST = {"A thumb's way": 15, "A ramp step's way": 35, "A judgement's way": 19, SCORE: 3}
"""Files of each way (design/models.md): lower a number with each file that goes, never raise it."""
ORDER = ("schemas", "evalcore", "agents", "streams", "rampgate")
STEPS = [step for steps in ways().values() for step in steps]


@pytest.mark.parametrize("way", list(ways()))
def test_a_way_is_no_longer_than_it_may_be_and_names_no_file_twice(way: str) -> None:
    files = [file for file, _ in ways()[way]]
    assert 0 < len(files) <= LONGEST[way]
    assert len(set(files)) == len(files)


def test_each_function_of_a_way_is_there() -> None:
    for file, function in STEPS:
        body: list[ast.stmt] = ast.parse((ROOT / file).read_text()).body
        for name in function.split("."):
            kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            found = [one for one in body if isinstance(one, kinds) and one.name == name]
            assert found, f"{file} has no {function}"
            body = found[0].body


def test_no_import_of_a_way_climbs_to_a_higher_room() -> None:
    for file in {file for file, _ in STEPS}:
        room = ORDER.index(file.split("/")[0])
        for node in ast.walk(ast.parse((ROOT / file).read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            higher = [name for name in names if name.split(".")[0] in ORDER[room + 1 :]]
            assert not higher, f"{file} imports {higher}"
