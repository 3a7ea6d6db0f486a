"""What a test does that needs something this machine does not have: it is left out, and under CI it fails."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

from rampgate.local.services.process import ServiceUnavailable


def give_up(error: ServiceUnavailable) -> NoReturn:
    """The error says which service, why, and what would help."""
    missing(error.service, str(error))


def missing(name: str, why: str) -> NoReturn:
    """Leave the test out, or fail it under CI, unless `.ci/run` named it as what this machine can't have."""
    under_ci = os.environ.get("CI", "").lower() not in ("", "0", "false")
    if under_ci and name not in os.environ.get("CI_WITHOUT", "").split():
        pytest.fail(why, pytrace=False)
    pytest.skip(why)
