"""A service that can't be had leaves a test out on a developer's machine, and fails it under CI."""

from __future__ import annotations

import pytest

from rampgate.local.services.process import ServiceUnavailable
from tests.giving_up import give_up, missing

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
