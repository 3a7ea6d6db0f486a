"""The stand-ins are an extra: without it `dev` and `demo` say what to install, and nothing else imports them."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.console import Failure


@pytest.mark.parametrize("command", ["dev", "demo"])
@pytest.mark.parametrize("package", ["confluent_kafka", "uuid6"])
def test_without_the_extra_the_command_names_it(monkeypatch: pytest.MonkeyPatch, command: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    result = CliRunner().invoke(app, [command])
    assert isinstance(result.exception, Failure)
    assert package in str(result.exception)
    assert "pip install 'rampgate[local]'" in str(result.exception)
