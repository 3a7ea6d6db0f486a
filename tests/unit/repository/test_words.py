"""What pages, commands and metrics say of one thing is one thing, and what they promise is kept. The pages of faults,
of hostile input and of how to game a verdict name one test a row, and each is there. docs/ways.md names files and
functions that exist, no more than a newcomer can follow, and no import there climbs."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.report import state
from schemas.answers import Coverage
from streams.metrics import Metrics
from streams.queries.coverage import WindowCoverage
from tests.root import ROOT
from tests.ways import ways

COVERAGE = "turns with a user signal or a judged trace"
SHARE = "a signal and a trace"


def words(text: str) -> str:
    return re.sub(r'[\s"]+(f")?', " ", text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param((ROOT / "docs" / "glossary.md").read_text(), id="glossary"),
        pytest.param((ROOT / "docs" / "how-it-works.md").read_text(), id="how it works"),
        pytest.param((ROOT / "docs" / "verdicts.md").read_text(), id="verdicts"),
        pytest.param((ROOT / "docs" / "metrics.md").read_text(), id="metrics' page"),
        pytest.param(Coverage.__doc__ or "", id="the answer's schema"),
        pytest.param(WindowCoverage.__doc__ or "", id="what gates compare"),
        pytest.param(inspect.getsource(state), id="console"),
        pytest.param("\n".join(one.help for one in Metrics().specs), id="metrics"),
        pytest.param(CliRunner().invoke(app, ["coverage", "--help"]).output, id="command"),
    ],
)
def test_coverage_is_worded_as_it_is_counted(text: str) -> None:
    """`agents/join/counting.py` counts a signal that holds and a trace, judged or not, as both."""
    told = words(text)
    assert COVERAGE in told
    assert SHARE in told
    assert "judge scores and a user signal on one trace" not in told


def test_the_clients_that_the_embedded_broker_serves_are_named() -> None:
    """librdkafka's broker in memory answers no ApiVersions 4, with which kafka-python 3 begins (tried with 3.0.12; with
    2.3.3, aiokafka and confluent-kafka it works; Java's 4.1.0 finds no topic)."""
    readme = words((ROOT / "README.md").read_text())
    assert "any Kafka producer" not in readme
    for client in ("confluent-kafka", "aiokafka", "kafka-python 2", "kafka-python 3", "Java", "dev --real"):
        assert client in readme, client


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


SCORE = "A score's way to the store of traces"
LONGEST = {"A thumb's way": 16, "A ramp step's way": 36, "A judgement's way": 19, SCORE: 3}
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
