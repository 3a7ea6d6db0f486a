from __future__ import annotations

from collections.abc import Iterator

import pytest

from rampgate.local.model.server import Running
from tests.unit.rampgate.ci_gate.gate_rig import local_model


@pytest.fixture(scope="module")
def model() -> Iterator[Running]:
    with local_model() as running:
        yield running
