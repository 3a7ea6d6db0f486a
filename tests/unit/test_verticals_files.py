"""The registered verticals are valid, and named after their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
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


def test_no_shipped_vertical_is_judged_twice_and_no_other_judge_can_be_named() -> None:
    for file in FOLDER.glob("*.yaml"):
        assert Vertical.model_validate(YAML(typ="safe").load(file.read_text())).live_judge == "rampgate"
    assert Vertical(name="a", project="a", live_judge="opik").live_judge == "opik"
    with pytest.raises(ValidationError):
        Vertical.model_validate({"name": "a", "project": "a", "live_judge": "both"})
