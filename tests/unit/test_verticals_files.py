"""The registered verticals are valid, and named after their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from schemas.verticals import Vertical

FOLDER = Path(__file__).resolve().parents[2] / "configs/verticals"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.stem)
def test_a_vertical_is_valid_and_named_after_its_file(file: Path) -> None:
    assert Vertical.model_validate(YAML(typ="safe").load(file.read_text())).name == file.stem


def test_the_projects_are_the_known_ones() -> None:
    found = {file.stem: YAML(typ="safe").load(file.read_text())["project"] for file in FOLDER.glob("*.yaml")}
    assert found["rewards_assistant"] == "consumer-agent"
    assert found["receipts"] == "receipts-eval"
