"""What pages, commands and metrics say of one thing is one thing, and what they promise is kept."""

from __future__ import annotations

import inspect
import re

import pytest
from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.report import state
from schemas.answers import Coverage
from streams.metrics import Metrics
from streams.queries.coverage import WindowCoverage
from tests.root import ROOT

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
