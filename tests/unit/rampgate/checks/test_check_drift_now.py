"""`rampgate check drift` on stored outputs: judged at the calibration and now, by the model (PF-9 FR-13)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from rampgate.local.model.behaviour import Behaviour
from rampgate.local.model.server import Running
from tests.action_program import programs
from tests.fork_server import Forked, ran
from tests.root import ROOT
from tests.unit.evalcore.registry.registry_disk import rewritten, written
from tests.unit.rampgate.checks.score_commands import said
from tests.unit.rampgate.ci_gate.gate_rig import MANIFEST, environment, jsonl, local_model
from tests.unit.rampgate.registry.git_folders import committed
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("root")
JUDGES = ("helpfulness", "brevity", "refusal", "honesty")
LIMIT = "drift: {kl_threshold: 0.1, baseline_source: provisional_seed, recalibration_due: 2027-02-18}"
GREETING = (
    '<component id="greeting" version="1.0">\n<capability category="greeting" archetype="conversation">\n'
    '<judges><judge id="helpfulness"/></judges>\n</capability>\n<prompt>Greet back.</prompt>\n</component>\n'
)
MADE = ("--seed", "words", "--items", "100")


@pytest.fixture
def root(tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry in git, with a limit for each judge and a prompt component."""
    changes = {f"rules/{judge}.yaml": LIMIT for judge in JUDGES}
    changes["rules/helpfulness.yaml"] = f"{{components: [greeting], {LIMIT}}}"
    root = written(tmp_path, {"evaluation_manifest.yaml": MANIFEST, **changes})
    component = tmp_path / "prompts" / "components" / "greeting.xml"
    component.parent.mkdir(parents=True)
    component.write_text(GREETING)
    for name, value in environment(root, model.url).items():
        monkeypatch.setenv(name, value)
    committed(root.parent)
    return root


def check(*words: str) -> tuple[int, dict[str, Any], str]:
    code, out, err = said("check", "drift", *words, "--json")
    return code, json.loads(out) if out else {}, err


def calls(model: Running) -> int:
    told = httpx.get(f"{model.url.removesuffix('/v1')}/_requests", timeout=30).json()["answers"]
    return sum(told.values())


def shifted(line: dict[str, Any]) -> dict[str, Any]:
    """Of INTEGER judges: what they say now is a point above this."""
    return {**line, "score": max(1, line["score"] - 1)} if isinstance(line["score"], float) else line


def test_the_same_outputs_are_judged_again_by_the_model_though_it_answered_them_before(
    root: Path, model: Running
) -> None:
    """Issue 13: a hosted model changes silently, so no kept answer stands for what it says now."""
    before = calls(model)
    code, captured, told = check(*MADE, "--capture", "2")
    assert code == 0, told
    first = calls(model) - before
    limits = {one["judge_id"]: one["kl_limit"] for one in captured["judges"]}
    assert sorted(limits) == sorted(JUDGES)
    assert all(limit == pytest.approx(0, abs=1e-9) for limit in limits.values()), "the stand-in answers alike each time"
    for _ in range(2):
        before = calls(model)
        code, found, told = check(*MADE)
        assert code == 0, (found, told)
        assert {one["judge_id"]: (one["passed"], one["kl"]) for one in found["judges"]} == dict.fromkeys(
            JUDGES, (True, 0)
        )
        assert calls(model) - before == first // 2 >= 4 * 100
    lines = (root / "drift-baseline.jsonl").read_text().splitlines()
    assert len(lines) == 4 * 100
    assert set(json.loads(lines[0])) == {"judge_id", "item_id", "score", "judge_version", "item_hash"}, "no text"


def test_a_judge_that_scores_a_point_higher_than_at_its_calibration_has_drifted(root: Path) -> None:
    check(*MADE, "--judge", "helpfulness", "--capture", "1")
    file = root / "drift-baseline.jsonl"
    jsonl(file, *(shifted(json.loads(line)) for line in file.read_text().splitlines()))
    code, found, _ = check(*MADE, "--judge", "helpfulness")
    (one,) = found["judges"]
    assert (code, one["passed"], one["threshold"], one["n"]) == (1, False, 0.1, 100)


def test_pf9_ac13_in_a_pull_request_the_judges_whose_file_or_component_changed_are_checked(root: Path) -> None:
    """PF-9 FR-13, AC-13: one record for each affected judge, for an edited rubric and for a component it names."""
    check(*MADE, "--capture", "1")
    committed(root.parent)
    code, found, told = check(*MADE, "--base", "HEAD")
    assert (code, found["judges"]) == (0, []), told
    rewritten(root / "rules" / "refusal.yaml", "Rate {{output}}", "Rate strictly {{output}}")
    code, found, _ = check(*MADE, "--base", "HEAD")
    assert [one["judge_id"] for one in found["judges"]] == ["refusal"]
    wanted = {"kl", "threshold", "ceiling_fraction", "floor_fraction", "passed", "reason"}
    assert wanted <= set(found["judges"][0])
    rewritten(root.parent / "prompts" / "components" / "greeting.xml", "Greet back.", "Greet back warmly.")
    _, found, _ = check(*MADE, "--base", "HEAD")
    assert sorted(one["judge_id"] for one in found["judges"]) == ["helpfulness", "refusal"]
    assert check(*MADE, "--base", "nowhere")[0] == 2


def test_in_a_pull_request_the_limit_and_a_missing_baseline_are_the_versions_before_it(root: Path) -> None:
    """A pull request that widens its own limit is held to the one that stood. Of a judge that no one calibrated yet the
    version before judges the outputs, too."""
    rule = root / "rules" / "refusal.yaml"
    rewritten(rule, "Rate {{output}}", "Rate strictly {{output}}")
    rewritten(rule, "0.1", "7.5")
    code, found, told = check(*MADE, "--base", "HEAD")
    (one,) = found["judges"]
    assert (code, one["passed"], one["threshold"], one["baseline_n"]) == (0, True, 0.1, 100), told
    assert found["judged_at_base"] == ["refusal"]


def test_an_output_that_is_another_one_now_is_left_out_on_both_sides(root: Path) -> None:
    """An agent that changed is not a judge that changed: then no one can tell."""
    check(*MADE, "--judge", "helpfulness", "--capture", "1")
    code, found, _ = check("--seed", "other words", "--judge", "helpfulness")
    (one,) = found["judges"]
    assert (code, one["passed"], one["baseline_n"]) == (1, None, 0)


def test_a_baseline_of_one_judge_leaves_the_others_and_a_judge_without_one_is_undecided(root: Path) -> None:
    for judge in ("helpfulness", "refusal", "helpfulness"):
        assert check(*MADE, "--judge", judge, "--capture", "1")[0] == 0
    assert len((root / "drift-baseline.jsonl").read_text().splitlines()) == 200
    code, found, _ = check(*MADE)
    passed = {one["judge_id"]: one["passed"] for one in found["judges"]}
    assert (code, passed) == (1, {"helpfulness": True, "refusal": True, "brevity": None, "honesty": None})


def test_a_vertical_has_a_baseline_of_its_own(root: Path) -> None:
    code, captured, _ = check(*MADE, "--judge", "helpfulness", "--vertical", "shop", "--capture", "1")
    assert (code, Path(captured["written"]).resolve()) == (
        0, root.parent.resolve() / "specs" / "verticals" / "shop" / "eval" / "drift-baseline.jsonl"
    )  # fmt: skip
    assert check(*MADE, "--judge", "helpfulness", "--vertical", "shop")[0] == 0
    assert check(*MADE, "--judge", "helpfulness")[0] == 1, "the platform has none yet"


def test_stored_outputs_may_be_a_file(root: Path, tmp_path: Path) -> None:
    items = [{"input": f"how {n}?", "output": f"so {n}", "metadata": {"id": f"i{n}"}} for n in range(30)]
    file = str(jsonl(tmp_path / "stored.jsonl", *items))
    assert check("--outputs", file, "--judge", "helpfulness", "--capture", "1")[0] == 0
    assert check("--outputs", file, "--judge", "helpfulness")[0] == 0
    jsonl(tmp_path / "stored.jsonl", *({**one, "output": "another"} for one in items))
    assert check("--outputs", file, "--judge", "helpfulness")[0] == 1


def test_the_weekly_script_runs_the_real_command_for_the_platform_and_each_vertical_with_a_baseline(
    root: Path, model: Running
) -> None:
    """PF-9 FR-13, AC-13: each run of CI leaves a record per judge that programs read, a proposal's too."""
    folder = root.parent
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "check_drift", folder / ".ci")
    programs(folder)

    def script(*words: str) -> subprocess.CompletedProcess[str]:
        settings = {**os.environ, "DRIFT_SEED": "words", "GITHUB_STEP_SUMMARY": str(folder / "summary")}
        settings["DRIFT_REPORTS"] = str(folder / "reports")
        return subprocess.run(
            [".ci/check_drift", *words],
            cwd=folder,
            env=settings,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    done = script()
    assert (done.returncode, "no baseline" in done.stderr) == (2, True), done.stderr
    assert done.stdout == ""
    check(*MADE, "--judge", "brevity", "--vertical", "shop", "--capture", "1")
    before = calls(model)
    done = script()
    assert (done.returncode, "no baseline" in done.stderr) == (2, True), "what is missing is told"
    assert calls(model) - before == 4 * 120, "and what is there is checked"
    assert [file.name for file in (folder / "reports").iterdir()] == ["drift-shop.json"]
    check(*MADE, "--capture", "1")
    before = calls(model)
    done = script()
    assert done.returncode == 1, "of three judges of the vertical no one can tell"
    assert calls(model) - before == 2 * 4 * 120, "each is asked, the platform's and the vertical's"
    reports = {name: json.loads((folder / "reports" / f"{name}.json").read_text()) for name in ("drift", "drift-shop")}
    for report in reports.values():
        fields = {"judge_id", "kl", "threshold", "ceiling_fraction", "floor_fraction", "passed", "reason"}
        assert len(report["judges"]) == 4
        assert all(fields <= one.keys() for one in report["judges"])
    assert [one["passed"] for one in reports["drift-shop"]["judges"]].count(True) == 1
    summary = (folder / "summary").read_text()
    assert summary.count("Drift of judges") == 3
    assert summary.count("Drift of judges of shop") == 2
    (folder / "reports" / "drift.json").unlink()
    done = script(str(root), "HEAD")
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "reports" / "drift.json").read_text())["judges"] == []


def test_a_capture_that_is_killed_goes_on_and_asks_nothing_twice(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 13: long work resumes. What was answered stands beside the baseline; the baseline is the same bytes as of a
    run that no one killed."""
    words = ["check", "drift", *MADE, "--capture", "2", "--json"]
    with local_model(Behaviour(latency_seconds=0.02)) as slow:
        monkeypatch.setenv("RAMPGATE_MODEL_URL", slow.url)
        monkeypatch.setenv("RAMPGATE_MODEL_CALLS_AT_ONCE", "2")
        with Path(os.devnull).open("wb") as nowhere:
            began = Forked(words, os.environ, nowhere, nowhere)
        try:
            until(lambda: sum(len(kept(file)) for file in root.glob(".drift-baseline*")) > 30)
        finally:
            began.kill()
            began.wait(30)
        assert not (root / "drift-baseline.jsonl").exists()
        (file,) = root.glob(".drift-baseline*")
        answered, before = len(kept(file)), calls(slow)
        monkeypatch.setenv("RAMPGATE_MODEL_CALLS_AT_ONCE", "20")
        done = ran(*words)
        assert done.returncode == 0, done.stderr
        assert calls(slow) - before == 2 * 4 * 100 - answered
        assert f"goes on with {answered} answers" in done.stderr
        assert "drift: 800 of 800 questions" in done.stderr
        json.loads(done.stdout)
        assert list(root.glob(".drift-baseline*")) == [], "an ended run leaves nothing"
        whole = (root / "drift-baseline.jsonl").read_bytes()
        (root / "drift-baseline.jsonl").unlink()
        before = calls(slow)
        assert ran(*words).returncode == 0
        assert calls(slow) - before == 2 * 4 * 100, "the next run reaches the model"
        assert (root / "drift-baseline.jsonl").read_bytes() == whole


def kept(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines()[1:] if line.endswith("]")]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "give two files"),
        (("then.jsonl", "--seed", "x"), "not both"),
        (("then.jsonl", "now.jsonl", "--judge", "refusal"), "--judge: goes with --outputs"),
        (("then.jsonl", "now.jsonl", "--base", "HEAD", "--capture", "3"), "--base, --capture: goes with"),
        (("then.jsonl", "now.jsonl", "--items", "5"), "--items: goes with"),
        (("then.jsonl", "now.jsonl", "--baselines", "a.jsonl", "--items", "5"), "--items, --baselines: goes"),
        (("then.jsonl", "now.jsonl", "--model", "http://x"), "--model: is no option any more; RAMPGATE_MODEL_URL"),
        (("--outputs", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--seed", "x", "--judge", "nobody"), "nobody"),
        (("--seed", "x", "--vertical", "nowhere"), "nowhere"),
        (("--seed", "x", "--judge", "refusal"), "answered none"),
    ],
)
def test_bad_input_and_a_model_out_of_reach_end_with_2(
    words: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAMPGATE_MODEL_PATIENCE_SECONDS", "1")
    monkeypatch.setenv("RAMPGATE_MODEL_URL", "http://127.0.0.1:9/v1")
    code, _, told = check(*words)
    assert (code, says in told) == (2, True), told
