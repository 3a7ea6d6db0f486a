"""What judges fault runs and samples is independent: a mistake in the product can't be in it, too."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.root import ROOT

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
