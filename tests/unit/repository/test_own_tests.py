"""How this suite's own tests run: a file's share a process, what can't be had is left out or fails, logs end with a
test, no test runs for another's sake, and what judges fault runs is independent of the product."""

from __future__ import annotations

import ast
import inspect
import io
import logging
import re
import sys
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import structlog
from structlog.testing import capture_logs
from xdist.scheduler import LoadFileScheduling

from rampgate.local.services.process import ServiceUnavailable
from rampgate.logs import configure_logs
from tests import conftest
from tests.giving_up import give_up, missing
from tests.logs_restored import logs_restored
from tests.root import ROOT


def test_a_file_is_shared_out_as_one_and_a_fault_test_alone() -> None:
    """Else each process sets up a module's fixtures again (xdist 3.8 does, of its own groups, under pytest 9.2)."""
    assert "FilesTogether" in inspect.getsource(conftest.pytest_xdist_make_scheduler)
    scheduler = conftest.FilesTogether.__new__(conftest.FilesTogether)
    shared = [scheduler._split_scope(f"tests/stream/test_ways.py::test_{name}") for name in ("a", "b[x::y]")]
    assert shared == ["tests/stream/test_ways.py"] * 2
    alone = [scheduler._split_scope(f"tests/fault/test_kills_fault.py::test_{name}") for name in ("a", "b[x]")]
    assert len(set(alone)) == 2


def test_unit_tests_fill_the_waits_of_the_others_and_nothing_is_left_out() -> None:
    queue = {"tests/fault/test_a.py::test_x": {"x": False}, "tests/stream/test_b.py": {"b": False}}
    queue |= {f"tests/unit/test_{n}.py": {f"{n}": False} for n in range(6)}

    class Scheduler(conftest.FilesTogether):
        def __init__(self) -> None:
            self.collection, self.workqueue = None, OrderedDict(queue)

    scheduler = Scheduler()
    with patch.object(LoadFileScheduling, "schedule"):
        scheduler.schedule()
    assert dict(scheduler.workqueue) == queue
    assert [scope.split("/")[1] for scope in scheduler.workqueue] == [
        *("fault", "unit", "unit", "stream", "unit", "unit", "unit", "unit")
    ]


ERROR = ServiceUnavailable("kafka", "no JDK", "install one")


@pytest.mark.parametrize("ci", ["1", "true"])
def test_under_ci_it_fails(monkeypatch: pytest.MonkeyPatch, ci: str) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.fail.Exception, match="no JDK"):
        give_up(ERROR)


def test_under_ci_what_the_machine_was_said_not_to_have_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("CI_WITHOUT", "compose xmllint")
    with pytest.raises(pytest.skip.Exception, match="no plugin"):
        missing("compose", "no plugin")
    with pytest.raises(pytest.fail.Exception):
        missing("promtool", "not there")


@pytest.mark.parametrize("ci", ["", "0", "false"])
def test_elsewhere_the_test_is_left_out_and_says_why(monkeypatch: pytest.MonkeyPatch, ci: str) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.skip.Exception, match="no JDK"):
        give_up(ERROR)


log = structlog.get_logger()


def test_what_a_command_configures_is_gone_after_its_test() -> None:
    root, opik = logging.getLogger(), logging.getLogger("opik")
    before = (list(root.handlers), root.level, opik.level, structlog.get_config())
    with logs_restored():
        configure_logs("error", "json")
        assert structlog.get_config() != before[3]
        log.error("kept")
    assert (list(root.handlers), root.level, opik.level, structlog.get_config()) == before


def test_a_logger_used_under_a_command_is_captured_by_the_next_test() -> None:
    with logs_restored():
        configure_logs("info", "json")
        logging.getLogger().handlers[:] = [logging.StreamHandler(io.StringIO())]
        log.info("under the command")
    with capture_logs() as logs:
        log.info("in the next test")
    assert [line["event"] for line in logs] == ["in the next test"]


IMPORT = re.compile(r"^(?:from|import) tests[\w.]*\.test_\w+", re.M)


def test_no_test_imports_another_test_module() -> None:
    found = {str(file.relative_to(ROOT)): IMPORT.findall(file.read_text()) for file in (ROOT / "tests").rglob("*.py")}
    assert len(found) > 200
    assert {file: imports for file, imports in found.items() if imports} == {}


LEDGER = ROOT / "tests" / "fault" / "ledger"
SAMPLES = ROOT / "tests" / "samples"
JUDGES = [*LEDGER.glob("*.py"), *(SAMPLES / name for name in ("turns.py", "natural_orders.py", "oracle.py"))]
"""`product.py` beside the last drives the product, and judges nothing."""
CLIENTS = {"confluent_kafka", "httpx"}
"""Read Kafka and Opik; the product reads Kafka with another."""


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("path", sorted(JUDGES), ids=lambda path: path.name)
def test_the_ledger_imports_nothing_of_the_product_and_nothing_that_does(path: Path) -> None:
    for name in imports(path):
        ours = name.startswith("tests.fault.ledger.") or name in ("tests.samples.turns", "tests.samples.oracle")
        assert ours or name.partition(".")[0] in CLIENTS | sys.stdlib_module_names, f"{path.name} imports {name}"


def test_it_imports_nothing_by_name_at_run_time() -> None:
    for path in JUDGES:
        text = path.read_text()
        assert "import_module" not in text
        assert "__import__" not in text
