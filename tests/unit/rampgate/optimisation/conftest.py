from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.rampgate.optimisation.optimise_rig import OptimiseRig, optimise_rig


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OptimiseRig]:
    with optimise_rig(tmp_path, monkeypatch) as made:
        yield made
