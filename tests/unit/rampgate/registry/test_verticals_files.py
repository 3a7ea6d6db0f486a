"""The registered verticals are valid, and named after their files."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from rampgate.registry.verticals import key_of, load_verticals
from rampgate.settings import Settings, SettingsError
from schemas.verticals import Vertical
from tests.root import ROOT

FOLDER = ROOT / "configs/verticals"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.stem)
def test_a_vertical_is_valid_and_named_after_its_file(file: Path) -> None:
    assert Vertical.model_validate(yaml.safe_load(file.read_text())).name == file.stem


def test_the_projects_are_the_known_ones() -> None:
    found = {file.stem: yaml.safe_load(file.read_text())["project"] for file in FOLDER.glob("*.yaml")}
    assert found["rewards_assistant"] == "consumer-agent"
    assert found["receipts"] == "receipts-eval"


def test_no_shipped_vertical_is_judged_twice_and_no_other_judge_can_be_named() -> None:
    for file in FOLDER.glob("*.yaml"):
        assert Vertical.model_validate(yaml.safe_load(file.read_text())).live_judge == "rampgate"
    assert Vertical(name="a", project="a", live_judge="opik").live_judge == "opik"
    with pytest.raises(ValidationError):
        Vertical.model_validate({"name": "a", "project": "a", "live_judge": "both"})


@pytest.mark.parametrize("name", ["other", "platform", "unregistered"])
def test_a_vertical_is_not_named_as_metrics_and_views_name_turns_of_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "verticals").mkdir()
    (tmp_path / f"verticals/{name}.yaml").write_text(f"name: {name}\nproject: p\n")
    with pytest.raises(SettingsError, match=name):
        load_verticals(tmp_path)


def test_a_vertical_s_own_key_is_not_sent_in_the_clear_to_another_machine(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("canary")
    own = Vertical(name="a", project="a", api_key_file=tmp_path / "key")
    with pytest.raises(ValueError, match="in the clear"):
        key_of(own, Settings(opik="http://opik/api"))
    for settings in (
        Settings(opik="http://opik/api", allow_plaintext=True),
        Settings(opik="https://opik/api"),
        Settings(opik="http://127.0.0.1:5173/api"),
    ):
        assert key_of(own, settings) == "canary"


def test_all_that_is_wrong_with_verticals_is_told_with_its_line(tmp_path: Path) -> None:
    folder = tmp_path / "verticals"
    folder.mkdir()
    (folder / "shop.yaml").write_text("name: shop\nproject: p\nlive_jugde: opik\n")
    (folder / "other.yaml").write_text("name: shop\nproject: p\n")
    (folder / "unknown.yaml").write_text("name: unknown\nproject: p\n")
    (folder / "broken.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError) as told:
        load_verticals(tmp_path)
    message = str(told.value)
    assert "shop.yaml:3:1" in message
    assert "did you mean 'live_judge'?" in message
    assert "other.yaml: name: 'shop' is not the file's name" in message
    assert "choose another name, not 'unknown'" in message
    assert "broken.yaml" in message


def test_the_shipped_verticals_are_loaded_and_no_folder_means_none(tmp_path: Path) -> None:
    assert set(load_verticals(FOLDER.parent)) == {file.stem for file in FOLDER.glob("*.yaml")}
    assert load_verticals(tmp_path) == {}
