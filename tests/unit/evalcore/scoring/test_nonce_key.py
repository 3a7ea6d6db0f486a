"""The key of the nonces around judged turns: for this purpose alone, and the same wherever the secret is."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore.scoring.nonce_key import nonce_key

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
    """No check is off because nobody configured it."""
    assert nonce_key() == nonce_key()
    assert len(nonce_key()) == 32
    assert nonce_key() not in (nonce_key(SECRET), nonce_key("RAMPGATE_SEAL_KEY"))


def test_a_file_that_can_not_be_read_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAMPGATE_SEAL_KEY_FILE", str(tmp_path / "missing"))
    with pytest.raises(ValueError, match="RAMPGATE_SEAL_KEY_FILE"):
        nonce_key()
