"""The key of the judges' model, or the file that holds it (contracts §7; docs/judging.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore import aevaluate_gate
from evalcore.scoring.chat_model import model_key
from rampgate.local.model.server import start
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY

ITEMS = [{"input": "i", "output": f"so {n} #quality:1", "metadata": {"id": f"i{n}"}} for n in range(20)]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the environment names; nothing is there yet."""
    named = tmp_path / "key"
    monkeypatch.delenv("RAMPGATE_MODEL_KEY", raising=False)
    monkeypatch.setenv("RAMPGATE_MODEL_KEY_FILE", str(named))
    return named


async def test_a_gate_in_one_call_takes_the_key_from_its_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("  k\n")
    model = await start(key="k")
    try:
        monkeypatch.setenv("RAMPGATE_MODEL_URL", model.url)
        found = await aevaluate_gate("pre_merge", ITEMS, ["helpfulness"], registry=built(), today=TODAY)
        assert found.per_judge_scores["helpfulness"].score == 5.0
    finally:
        await model.close()


def test_the_key_itself_goes_before_its_file_and_an_empty_one_is_none(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAMPGATE_MODEL_KEY", "given")
    assert model_key() == "given", "nor is the file looked for"
    monkeypatch.setenv("RAMPGATE_MODEL_KEY", "")
    file.write_text("held")
    assert model_key() == "held"
    monkeypatch.delenv("RAMPGATE_MODEL_KEY_FILE")
    monkeypatch.delenv("RAMPGATE_MODEL_KEY")
    assert model_key() is None


@pytest.mark.parametrize(("content", "why"), [(None, "can't read"), (b" \n", "is empty"), (b"\xff", "is no text")])
async def test_a_file_without_a_key_is_named_with_its_setting(
    file: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, why: str
) -> None:
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("RAMPGATE_MODEL_URL", "http://127.0.0.1:9")
    with pytest.raises(ValueError, match=f"RAMPGATE_MODEL_KEY_FILE: .*{why}"):
        await aevaluate_gate("pre_merge", ITEMS, ["helpfulness"], registry=built(), today=TODAY)
