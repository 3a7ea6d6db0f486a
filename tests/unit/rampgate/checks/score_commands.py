"""Commands on files of scores, run in an empty folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rampgate.cli import main


def alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings file and no registry but those that a test names."""
    monkeypatch.setenv("RAMPGATE_SETTINGS", str(folder / "none.toml"))
    monkeypatch.delenv("RAMPGATE_CONFIGS", raising=False)
    monkeypatch.chdir(folder)


def ran(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, dict[str, Any], str]:
    """Exit code, document of `--json` (else the text), and what was said on stderr."""
    monkeypatch.setattr("sys.argv", ["rampgate", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    code = int(ended.value.code or 0)
    return code, json.loads(said.out) if "--json" in words and code < 2 else {"text": said.out}, said.err


def scored(judge: str, scores: list[Any]) -> list[dict[str, Any]]:
    return [{"judge_id": judge, "item_id": f"i{n}", "score": score} for n, score in enumerate(scores)]
