"""`rampgate spec validate SPEC`: exit 0 and "Valid", 1 and every finding, 2 for what can't be read (Step 0.5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rampgate.cli import main
from tests.root import ROOT
from tests.unit.rampgate.spec.spec_on_disk import SPEC, written


def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["rampgate", "spec", "validate", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    out = capsys.readouterr()
    return int(ended.value.code or 0), out.out, out.err


# AgentCI Step 0.5 box 3.
def test_a_valid_spec_is_0(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = told(capsys, monkeypatch, str(ROOT / "docs" / "sample_spec.yaml"))
    assert (code, "Valid: 3 queries, agent='rag-agent'" in out) == (0, True)


# AgentCI Step 0.5 box 3.
def test_an_invalid_one_is_1_with_file_line_field_and_fix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, SPEC.replace("max_llm_calls: 1", "max_llm_calls: -1"))
    code, out, _ = told(capsys, monkeypatch, str(path))
    assert code == 1
    assert f"{path}:10:10: error: queries[1].cost.max_llm_calls: must be at least 0, not the number -1" in out
    assert "fix: write a number that is at least 0" in out
    assert "Invalid: 1 error" in out


def test_as_json_it_is_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SPEC.replace("candidate:", "defaults: {cost: {max_llm_calls: 2}}\ncandidate:").replace(
        "{max_llm_calls: 1}", ""
    )
    code, out, _ = told(capsys, monkeypatch, str(written(tmp_path, text)), "--json")
    found = json.loads(out)
    assert (code, found["valid"], found["agent"], found["queries"]) == (0, True, "rag-agent", 2)
    assert [one["field"] for one in found["off"]] == ["cost"]
    lines = written(tmp_path, text).read_text().splitlines()
    assert len(found["golden_queries"]) == 2
    for one in found["golden_queries"]:  # by them pytest has a test of each
        assert one["query"] in lines[one["line"] - 1]
    assert [one["check"] for one in found["warnings"]] == ["asserts-nothing"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (SPEC.encode() + b"# caf\xe9\n", "is not UTF-8"),
        (SPEC.encode() + b"# x\n" * 300_000, "larger than 1,000,000 bytes"),
    ],
)
def test_what_is_no_text_or_too_long_is_said_of_the_spec(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, raw: bytes, words: str
) -> None:
    """It is no rule file, and no clause about these is the reason."""
    path = tmp_path / "agentci_spec.yaml"
    path.write_bytes(raw)
    code, out, _ = told(capsys, monkeypatch, str(path))
    assert code == 1
    assert words in out
    assert "rule file" not in out
    assert "PC5" not in out


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_what_cannot_be_read_is_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    code, _, err = told(capsys, monkeypatch, str(tmp_path / name))
    assert code == 2
    assert str(tmp_path) in err
