"""`rampgate check trajectory` compares tools called with a reference (contracts §5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rampgate.checks.score_commands import alone, ran

FIELDS = ["case_id", "strict", "unordered", "subset", "superset", "precision", "recall", "f1", "lcs", "edit"]


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "paths.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def line(name: Any, actual: list[str], reference: list[str]) -> dict[str, Any]:
    return {"case_id": name, "actual": actual, "reference": reference}


def test_each_case_has_the_figures_of_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(tmp_path, monkeypatch)
    path = written(
        tmp_path,
        line("router", ["search", "search", "answer"], ["search", "answer", "close"]),
        line(7, [], []),
        line("silent", [], ["search"]),
        line("busy", ["search"], []),
    )
    code, told, _ = ran("check", "trajectory", str(path), "--json")
    assert code == 0, "nothing is decided"
    rows = {one["case_id"]: [one[name] for name in FIELDS[1:]] for one in told["cases"]}
    assert [list(one)[:10] for one in told["cases"]] == [FIELDS] * 4
    assert rows == {
        "router": [False] * 4 + [1.0] + [pytest.approx(one) for one in (2 / 3, 0.8, 2 / 3, 1 / 3)],
        7: [True] * 4 + [1.0] * 5,
        "silent": [False, False, False, True] + [0.0] * 5,
        "busy": [False, False, True, False] + [0.0] * 5,
    }  # fmt: skip
    assert told["cases"][0]["reasons"]["subset"] == "not called: close"


def test_the_report_names_the_case_and_why_a_mode_does_not_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone(tmp_path, monkeypatch)
    path = written(tmp_path, line("router", ["search"], ["answer"]), line("alike", ["a"], ["a"]))
    code, told, _ = ran("check", "trajectory", str(path))
    assert code == 0
    assert "1 of 2 cases" in told["text"]
    for said in ("strict: call 1 must be answer, got search", "subset: not called: answer"):
        assert f"router, {said}" in " ".join(told["text"].split())


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "has no lines; one is {case_id, actual, reference}"),
        ([line("a", [], []), line("a", ["x"], [])], "2: case_id: must be there once"),
        ([{"case_id": "a", "actual": ["x"]}], "1: reference: must be a list of tools' names, got nothing"),
        ([{"case_id": "a", "actual": "search", "reference": []}], "1: actual: must be a list of tools' names"),
        ([line("a", [""], [])], "1: actual.0: must be a text that is not empty"),
        (["{broken"], "1: must be JSON"),
    ],
)
def test_a_bad_file_is_refused_with_its_line_and_field(
    lines: list[Any],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone(tmp_path, monkeypatch)
    code, _, error = ran("check", "trajectory", str(written(tmp_path, *lines)), "--json")
    assert code == 2
    assert message in " ".join(error.split())
