"""The key of the judges' model, or the file that holds it (contracts §7; docs/judging.md). The key of the nonces around
judged turns: for this purpose alone, and the same wherever the secret is."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore import aevaluate_gate
from evalcore.scoring.chat_model import model_key
from evalcore.scoring.nonce_key import nonce_key
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


SECRET = "an installation's secret"


@pytest.fixture(autouse=True)
def no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAMPGATE_SEAL_KEY", "RAMPGATE_SEAL_KEY_FILE", "RAMPGATE_MODEL_KEY", "RAMPGATE_MODEL_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_what_is_handed_in_goes_before_the_environment_and_is_not_used_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", "another")
    assert nonce_key(SECRET) != nonce_key()
    assert SECRET.encode() not in nonce_key(SECRET)
    assert len(nonce_key(SECRET)) == 32


def test_library_and_worker_of_an_installation_have_one_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "seal").write_text(f"{SECRET}\n")
    for name, value in (
        ("RAMPGATE_SEAL_KEY", SECRET), ("RAMPGATE_SEAL_KEY_FILE", str(tmp_path / "seal")),
        ("RAMPGATE_MODEL_KEY", SECRET), ("RAMPGATE_MODEL_KEY_FILE", str(tmp_path / "seal")),
    ):  # fmt: skip
        with monkeypatch.context() as environment:
            environment.setenv(name, value)
            assert nonce_key() == nonce_key(SECRET), name


def test_without_a_secret_a_process_has_its_own() -> None:
    """No check is off because no one configured it."""
    assert nonce_key() == nonce_key()
    assert len(nonce_key()) == 32
    assert nonce_key() not in (nonce_key(SECRET), nonce_key("RAMPGATE_SEAL_KEY"))


def test_a_file_that_can_not_be_read_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAMPGATE_SEAL_KEY_FILE", str(tmp_path / "missing"))
    with pytest.raises(ValueError, match="RAMPGATE_SEAL_KEY_FILE"):
        nonce_key()
