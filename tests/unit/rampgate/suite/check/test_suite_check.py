"""`rampgate suite check` tells of a suite's own stored runs how its gates do, how long runs took, what was kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rampgate.suite.suite_commands import document, ended, failure, ran
from tests.unit.rampgate.suite.suite_folders import case, written

AGENT = """
import random
from collections import Counter
from pathlib import Path

SEED = Path(__file__).with_name("seed.txt").read_text()
ASKED = Counter()


def answer(case):
    name = case["input"]
    ASKED[name] += 1
    return "good" if random.Random(f"{SEED} {name} {ASKED[name]}").random() < 0.8 else "bad"
"""
"""An agent that is good four times in five, by a seed that is no part of it."""
ALONE = {"entry": "agent:answer", "at_once": 1, "parts": {"prompt": {"files": ["*.md", "agent.py"]}}}
"""One process answers, so that a seed says all of its answers."""
CASES = [case(number) for number in range(60)]


def noisy(folder: Path, **changes: Any) -> Path:
    path = written(folder, CASES, AGENT, **{"samples": 3, "candidate": ALONE, **changes})
    seeded(folder, 1)
    return path


def seeded(folder: Path, seed: int) -> None:
    (folder / "seed.txt").write_text(str(seed))


def checked(path: Path, *arguments: object, code: int = 0) -> dict[str, Any]:
    """The document of a check that ends with this code."""
    return document("check", path, "--simulations", 40, *arguments, codes=(code,))


def anew(path: Path, seed: int) -> None:
    """A run of the same configuration whose answers are made elsewhere, as a job without a key has it."""
    seeded(path.parent, seed)
    answers = path.parent / f"answers-{seed}.jsonl"
    ran(path, "--generate", answers, "--store", path.parent / f"store-{seed}.db")
    ended("run", path, "--score", answers, "--json")


def test_a_suites_own_runs_tell_its_rates(folder: Path) -> None:
    path = noisy(folder)
    ran(path, "--label", "main")
    ran(path)
    found = checked(path)
    assert (found["verdict"], found["findings"]) == ("pass", [])
    simulated = found["simulated"]
    assert (simulated["comparisons"], simulated["cases"], simulated["confirm"]) == (40, 60, "fresh")
    assert [one["gate"] for one in simulated["gates"]] == ["slice", "headline", "warning", "pull_request"]
    assert [(one["slice"], one["n"]) for one in simulated["slices"]] == [("even", 30), ("odd", 30)]
    assert sum(one["shipped"]["of"] for one in simulated["slices"]) == 120
    (turnaround,) = found["turnaround"]
    assert (turnaround["set"], turnaround["n"]) == ("full", 2)
    assert 0 < turnaround["p50_seconds"] <= turnaround["p95_seconds"]
    assert found["hits"] == {
        "judge_answers": {"kept": 0, "of": 0, "ratio": None},
        "answers": {"kept": 180, "of": 360, "ratio": 0.5},
    }


def test_runs_with_the_same_answers_are_no_comparison_and_fresh_ones_are(folder: Path) -> None:
    path = noisy(folder)
    ran(path, "--label", "main")
    ran(path)
    assert checked(path)["runs"]["drawn_apart"] == 1, "the second run has the answers of the first"
    for seed in (2, 3):
        anew(path, seed)
    again = path.parent / "answers-3.jsonl"
    ended("run", path, "--score", again, "--json")
    found = checked(path)
    assert (found["runs"]["looked_at"], found["runs"]["drawn_apart"]) == (5, 3)
    assert found["stored_no_ops"]["blocked_as_shipped"]["of"] >= 2


def test_a_candidate_at_an_address_is_checked_by_the_plain_rule(folder: Path) -> None:
    cases = [case(number, tags=[f"of-{number % 8}"]) for number in range(56)]
    path = written(folder, cases, AGENT, samples=3, candidate=ALONE)
    seeded(folder, 1)
    ran(path, "--label", "main")
    written(folder, cases, AGENT, samples=3, candidate={"url": "http://127.0.0.1:1/answer", "parts": ALONE["parts"]})
    found = checked(path, code=1)
    assert "false_alarms" in {one["code"] for one in found["findings"]}, "no fresh samples make up for chance"
    simulated = found["simulated"]
    assert simulated["confirm"] == "none"
    assert all(one["plain"] == one["shipped"] for one in simulated["gates"])


def test_metrics_are_left_for_a_collector(folder: Path, tmp_path: Path) -> None:
    path = noisy(folder, judges=["helpfulness"])
    ran(path, "--label", "main")
    ran(path)
    file = tmp_path / "suite.prom"
    found = checked(path, "--metrics-file", file)
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#") and "_bucket" not in line]
    told = dict(line.rsplit(" ", 1) for line in lines)
    assert float(told["rampgate_suite_turnaround_seconds_count"]) == 2
    assert float(told["rampgate_judge_cache_hit_ratio"]) == found["hits"]["judge_answers"]["ratio"] > 0.5
    gates, slices = found["simulated"]["gates"], found["simulated"]["slices"]
    for one in gates:
        name = f'rampgate_suite_false_alarm_ratio{{gate="{one["gate"]}"}}'
        assert float(told[name]) == one["shipped"]["ratio"]
    for one in slices:
        assert float(told[f'rampgate_suite_detection_ratio{{slice="{one["slice"]}"}}']) == one["shipped"]["ratio"]
    assert len(told) == 3 + len(gates) + len(slices)


def test_reports_say_what_is_blocked_too_often(folder: Path, tmp_path: Path) -> None:
    cases = [case(number, tags=["safety"]) for number in range(40)]
    path = written(folder, cases, AGENT, samples=3, safety=["safety"], candidate=ALONE)
    seeded(folder, 1)
    ran(path, "--label", "main")
    page, tests, words = tmp_path / "check.html", tmp_path / "check.xml", tmp_path / "check.md"
    found = checked(path, "--report", page, "--report", tests, "--report", words, code=1)
    assert {(one["code"], one["gate"]) for one in found["findings"]} == {
        ("false_alarms", "safety"),
        ("false_alarms", "pull_request"),
    }
    for file in (page, words):
        assert "guards nothing" in file.read_text()
    failed = re.findall(r'name="([^"]+)">\s*<failure', tests.read_text())
    assert failed == ["gate safety", "gate pull_request"]
    shown = ended("check", path, "--simulations", 40)
    assert "fail for good" in shown.stdout
    assert "guards nothing" in shown.stdout


def test_what_never_failed_in_any_run_is_no_finding_about_safety(folder: Path) -> None:
    cases = [case(number, tags=["safety" if number < 2 else "rest"]) for number in range(40)]
    path = written(folder, cases, samples=2, safety=["safety"])
    ran(path, "--label", "main")
    assert checked(path)["findings"] == []


def test_three_four_and_six_cases_that_fail_for_good_are_planted_and_seen(folder: Path) -> None:
    """In small slices and in large ones; a uniform drop says nothing of them."""
    cases = [case(number, tags=["few" if number < 4 else "many"]) for number in range(24)]
    path = written(folder, cases, samples=3)
    ran(path, "--label", "main")
    found = checked(path, "--simulations", 100)
    planted = {one["broken"]: one for one in found["simulated"].get("planted", ())}
    assert set(planted) == {3, 4, 6}, "the check says nothing of cases that fail for good"
    assert all(one["unseen"]["found"] == 0 for one in planted.values())
    assert all(one["shipped"]["ratio"] == 1.0 for one in found["simulated"]["slices"])


def test_a_decision_that_lets_broken_cases_through_is_found_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check asks the decision that runs go by: where that is deaf, the check says so."""
    path = written(folder, CASES[:12], samples=3)
    ran(path, "--label", "main")
    monkeypatch.setattr("evalcore.suite.gates._tripped", lambda *arguments, **rest: [])
    monkeypatch.setattr("evalcore.suite.gates._tested", lambda *arguments, **rest: {}, raising=False)
    monkeypatch.setattr("evalcore.suite.pairing.Pair.lost_wholly", lambda *arguments: False, raising=False)
    found = checked(path, "--simulations", 100, code=1)
    assert {one["code"] for one in found["findings"]} == {"missed_drops"}


def test_without_a_run_it_says_what_to_run(folder: Path) -> None:
    path = noisy(folder, samples=1)
    found = checked(path, code=1)
    assert [one["code"] for one in found["findings"]] == ["too_few_runs"]
    assert "suite run" in found["findings"][0]["message"]
    assert not (folder / ".rampgate").exists(), "a check makes no store"
    ran(path, "--label", "main")
    found = checked(path, code=1)
    assert found["simulated"] is None
    assert "two samples" in found["findings"][0]["message"]


def test_a_store_that_is_not_there_is_bad_input(folder: Path) -> None:
    assert "--store" in failure("check", noisy(folder), "--store", folder / "none.db")


@pytest.mark.parametrize(
    ("command", "gone"),
    [
        ("check", "--confirm"),
        ("check", "--seed"),
        ("compare", "--seed"),
        ("blame", "--candidate"),
        ("blame", "--cases"),
        ("report", "--format"),
    ],
)
def test_an_option_of_an_earlier_release_is_refused_with_what_replaces_it(command: str, gone: str) -> None:
    assert failure(command, "suite.yaml", gone, "x").startswith(f"{gone}: is no option any more; ")


def test_runs_without_the_seal_of_trusted_jobs_are_not_believed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = noisy(folder)
    ran(path, "--label", "main")
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", "of trusted jobs, long enough to be a secret")
    (finding,) = checked(path, code=1)["findings"]
    assert "RAMPGATE_SEAL_KEY" in finding["message"]
