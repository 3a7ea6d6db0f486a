"""Commands in this process, on files of scores in an empty folder."""

from __future__ import annotations

import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from rampgate.cli import main
from tests.unit.rampgate.ci_gate.gate_rig import jsonl


def alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings file and no registry but those that a test names."""
    monkeypatch.setenv("RAMPGATE_SETTINGS", str(folder / "none.toml"))
    monkeypatch.delenv("RAMPGATE_CONFIGS", raising=False)
    monkeypatch.chdir(folder)


def said(*words: object, **environment: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command; `environment` is set beside the test's own."""
    out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    with (
        patch("sys.argv", ["rampgate", *map(str, words)]),
        patch.dict(os.environ, environment),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    read = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined] # of BytesIO
    return int(ended.value.code or 0), read[0], read[1]


def ran(*words: object) -> tuple[int, dict[str, Any], str]:
    """Exit code, document of `--json` (else the text), and what was said on stderr."""
    code, out, err = said(*words)
    return code, json.loads(out) if "--json" in words and code < 2 else {"text": out}, err


def calibrated(source: str, lines: list[dict[str, Any]], *words: object) -> tuple[int, dict[str, Any], str]:
    """`rampgate calibrate SOURCE` on these lines, in a file of the working directory."""
    return ran("calibrate", source, jsonl(Path("scores.jsonl"), *lines), *words)


def scored(judge: str, scores: list[Any]) -> list[dict[str, Any]]:
    return [{"judge_id": judge, "item_id": f"i{n}", "score": score} for n, score in enumerate(scores)]


def rated(judge: str, pairs: list[tuple[float, float]]) -> list[dict[str, Any]]:
    return [
        {"judge_id": judge, "item_id": f"i{n}", "judge_score": own, "human_score": human}
        for n, (own, human) in enumerate(pairs)
    ]


AGREEING = [(1.0, 1.0)] * 60 + [(3.0, 4.0)] * 20 + [(4.0, 4.0)] * 60 + [(5.0, 5.0)] * 80
"""By a judge and by people."""
