"""`gate run --suite`: pre_merge and a suite's run on the same commit have one verdict, the worse of both.

A run that is missing, of another commit or damaged is no evidence, and fails.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rampgate.ci_gate.gate_commands import codes, gate, on_outputs, ran, refused
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, Rig, answer, jsonl
from tests.unit.rampgate.junit_files import junit_suite
from tests.unit.rampgate.suite.suite_commands import ran as suite_ran
from tests.unit.rampgate.suite.suite_folders import case, written

COMMIT = "c0ffee" * 6 + "c0ff"
SAFETY = {"code": "safety_regressed", "message": "c1 fails", "slice": None, "cases": ["c1"]}
SLOW = {"code": "safety_suspect", "message": "c2 may fail", "slice": None, "cases": ["c2"]}


def compared(verdict: str, *reasons: dict[str, Any]) -> dict[str, Any]:
    return {"score": "ok", "verdict": verdict, "reasons": list(reasons)}


def document(rig: Rig, verdict: str, comparison: dict[str, Any] | None, **changes: Any) -> Path:
    told = {
        "suite": "desk", "agent": "desk", "configuration": "a" * 64, "commit": COMMIT, "set": "full",
        "verdict": verdict, "left": None, "comparison": comparison, **changes,
    }  # fmt: skip
    path = rig.root / "suite.json"
    path.write_text(json.dumps(told))
    return path


def joined(rig: Rig, path: Path, *more: object, code: int) -> dict[str, Any]:
    return gate(rig, "--suite", path, "--commit", COMMIT, *more, code=code)


@pytest.mark.parametrize(
    ("verdict", "comparison", "level", "found"),
    [
        ("pass", compared("pass"), "pass", set[str]()),
        ("warn", compared("warn", SLOW), "warn", {"suite_warned"}),
        ("fail", compared("fail", SAFETY, SLOW), "fail", {"suite_failed", "suite_warned"}),
        ("unscored", None, "fail", {"suite_failed", "suite_warned"}),
        ("fail", None, "fail", {"suite_failed", "suite_warned"}),
        ("pass", None, "warn", {"suite_warned"}),
    ],
)
def test_a_gate_that_passes_has_the_suites_verdict_and_its_reasons(
    rig: Rig, verdict: str, comparison: dict[str, Any] | None, level: str, found: set[str]
) -> None:
    told = joined(rig, document(rig, verdict, comparison), code=int(level == "fail"))
    assert (told["verdict"], codes(told)) == (level, found)
    assert told["failing_judges"] == []
    assert told["suite"] == {
        "suite": "desk", "agent": "desk", "configuration": "a" * 64, "commit": COMMIT, "set": "full",
        "verdict": verdict,
    }  # fmt: skip


def test_an_incomplete_run_fails_though_all_that_it_compared_passes(rig: Rig) -> None:
    left = {"why": "over --max-cost 3", "answers": 4, "scores": 5}
    told = joined(rig, document(rig, "incomplete", compared("pass"), left=left), code=1)
    assert "over --max-cost 3; 4 answers and 5 scores are left" in told["reasons"][0]["message"]


def test_a_gate_that_fails_is_not_mended_by_a_suite_that_passes(rig: Rig) -> None:
    jsonl(rig.outputs, *(answer(n, 0) for n in range(ITEMS)))
    told = joined(rig, document(rig, "pass", compared("pass")), code=1)
    assert told["verdict"] == "fail"
    assert told["failing_judges"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"commit": "b" * 40}, f"is of {'b' * 40}, and this gate is of {COMMIT}"),
        ({"commit": ""}, "is of no commit that it names"),
        ({"verdict": "fine"}, "verdict: must be 'pass', 'warn'"),
        ({"configuration": "a"}, "configuration: "),
        ({"comparison": {"verdict": "pass"}}, "comparison.score: "),
    ],
)
def test_a_run_that_is_stale_or_damaged_fails_closed(rig: Rig, change: dict[str, Any], said: str) -> None:
    told = joined(rig, document(rig, **{"verdict": "pass", "comparison": compared("pass"), **change}), code=1)
    assert (told["verdict"], codes(told)) == ("fail", {"suite_unusable"})
    assert said in told["reasons"][0]["message"]


def test_a_run_of_another_configuration_than_the_gates_version_is_stale(rig: Rig) -> None:
    """As of a folder that was changed after its commit. A canary plan's version is the configuration's hash."""
    path = document(rig, "pass", compared("pass"))
    told = joined(rig, path, "--agent-version", "b" * 64, code=1)
    assert (told["verdict"], codes(told)) == ("fail", {"suite_unusable"})
    assert f"is of configuration {'a' * 64}, and this gate is of version {'b' * 64}" in told["reasons"][0]["message"]


@pytest.mark.parametrize("version", ["a" * 64, COMMIT, "2026.3.1", "b" * 63])
def test_a_version_that_is_the_runs_configuration_or_none_at_all_is_not_stale(rig: Rig, version: str) -> None:
    path = document(rig, "pass", compared("pass"))
    assert joined(rig, path, "--agent-version", version, code=0)["verdict"] == "pass"


def test_a_long_commit_as_the_version_is_not_taken_for_a_configuration(rig: Rig) -> None:
    path = document(rig, "pass", compared("pass"), commit="c" * 64)
    words = ("--suite", path, "--commit", "c" * 64, "--agent-version", "c" * 64)
    assert gate(rig, *words, code=0)["verdict"] == "pass"


def test_a_run_that_is_missing_or_cut_short_fails_closed(rig: Rig) -> None:
    path = document(rig, "pass", compared("pass"))
    path.write_text(path.read_text()[:-9])
    assert codes(joined(rig, path, code=1)) == {"suite_unusable"}
    path.unlink()
    assert codes(joined(rig, path, code=1)) == {"suite_unusable"}


@pytest.mark.parametrize(
    ("verdict", "comparison"), [("pass", compared("fail")), ("pass", compared("pass", SAFETY)), ("warn", None)]
)
def test_a_document_that_contradicts_itself_passes_nothing(
    rig: Rig, verdict: str, comparison: dict[str, Any] | None
) -> None:
    told = joined(rig, document(rig, verdict, comparison), code=int(comparison is not None))
    assert told["verdict"] == ("fail" if comparison is not None else "warn")


def test_a_run_that_is_not_yet_confirmed_fails_and_says_so(rig: Rig) -> None:
    again = {"file": "again.json", "cases": 6, "samples": 6}
    told = joined(rig, document(rig, "pass", compared("pass"), again=again), code=1)
    assert "not yet confirmed: both sides answer 6 cases 6 times each again" in told["reasons"][0]["message"]


def test_annotations_junit_and_markdown_tell_the_suite_beside_the_judges(rig: Rig) -> None:
    path = document(rig, "fail", compared("fail", {**SAFETY, "message": "@team see <img>"}, SLOW))
    reports = ("--report", rig.root / "gate.xml", "--report", rig.root / "gate.md", "--report", "github", "--json")
    done = ran(*on_outputs(rig), "--suite", path, "--commit", COMMIT, *reports)
    assert done.exit_code == 1, done.output
    assert (
        "::error title=gate pre_merge::suite_failed: the suite: suite desk, full set: safety_regressed" in done.stderr
    )
    assert (
        "::warning title=gate pre_merge::suite_warned: the suite: suite desk, full set: safety_suspect" in done.stderr
    )
    tests = {str(one.get("name")): one for one in junit_suite((rig.root / "gate.xml").read_bytes())}
    assert tests["the suite"].find("failure") is not None
    assert tests["gate pre_merge"].find("failure") is None
    text = (rig.root / "gate.md").read_text()
    assert text.startswith("## ❌ gate pre\\_merge: fail: its suite")
    assert "@team" not in text
    assert "<img>" not in text


def test_it_is_the_document_that_suite_run_writes(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_SHA", COMMIT)
    suite = written(rig.root / "suite", [case(number) for number in range(3)])
    suite_ran(suite, "--report", rig.root / "main.json", "--label", "main")
    suite_ran(suite, "--report", rig.root / "suite.json")
    assert joined(rig, rig.root / "suite.json", code=0)["verdict"] == "pass"
    (suite.parent / "prompt.md").write_text("bad\n")
    suite_ran(suite, "--report", rig.root / "suite.json", code=1)
    assert "suite_failed" in codes(joined(rig, rig.root / "suite.json", code=1))


def test_a_suite_needs_its_commit_and_has_no_place_at_a_rollouts_gate(rig: Rig) -> None:
    path = document(rig, "pass", compared("pass"))
    assert "--commit SHA" in refused(*on_outputs(rig), "--suite", path)
    assert "--suite: not at pre_ramp" in refused("--milestone", "pre_ramp", "--traces", rig.outputs, "--suite", path)
