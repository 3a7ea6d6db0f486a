"""The planted texts of `configs/canaries.yaml`, by name."""

from __future__ import annotations

from collections.abc import Mapping

from evalcore.yaml.models import read_as
from schemas.checks.canaries import CanaryFile
from tests.root import ROOT


def shipped_texts() -> Mapping[str, str]:
    parsed, findings = read_as(CanaryFile, "canaries.yaml", (ROOT / "configs/canaries.yaml").read_bytes())
    assert parsed is not None, findings
    return parsed.model.canaries
