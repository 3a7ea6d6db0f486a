"""A service that can't be had leaves a test out on a developer's machine, and fails it under CI."""

from __future__ import annotations

import pytest

from rampgate.local.services.process import ServiceUnavailable
from tests.giving_up import give_up

ERROR = ServiceUnavailable("kafka", "no JDK", "install one")


@pytest.mark.parametrize("ci", ["1", "true"])
def test_under_ci_it_fails(monkeypatch: pytest.MonkeyPatch, ci: str) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.fail.Exception, match="no JDK"):
        give_up(ERROR)


@pytest.mark.parametrize("ci", ["", "0", "false"])
def test_elsewhere_the_test_is_left_out_and_says_why(monkeypatch: pytest.MonkeyPatch, ci: str) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.skip.Exception, match="no JDK"):
        give_up(ERROR)
