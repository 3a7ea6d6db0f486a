"""The action that runs a pull request's gates, by the bash of its own steps, on two checkouts (PC5 FR-2, AC-3, §5.5).

The target is the small registry of the tests with a file of baselines; the pull request is a clone with changes. GitHub
and the judges' model are stand-ins on this machine.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.action_program import ACTION as FOLDER
from tests.action_program import action_beside_a_program, contexts, step_environment, step_run
from tests.fork_server import ran
from tests.unit.evalcore.registry.registry_disk import rewritten
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, Rig, answer, jsonl, local_model
from tests.unit.rampgate.ci_gate.github_api import FakeGitHub, github
from tests.unit.rampgate.registry.git_folders import committed, git
from tests.unit.repository.workflow_files import load

ACTION: Any = load(FOLDER / "action.yml")
STEPS = [step for step in ACTION["runs"]["steps"] if "run" in step]
UPLOADS = [step for step in ACTION["runs"]["steps"] if "uses" in step]
KEYS = ("MODEL_KEY", "CANDIDATE_KEY", "OPIK_API_KEY", "KAFKA_PASSWORD")
SECRET = "the-key-of-the-model"
CONDITION = re.compile(r"steps\.plan\.outputs\.(\w+) == '(\w+)'")
BLOCKS = "enforcement: {pre_merge: block, pre_ramp: block, pre_full: block}\n"


class Runner:
    """A workflow's job: `target` and `proposed` are checkouts, the program is this repository's."""

    def __init__(self, folder: Path, host: FakeGitHub, model: str) -> None:
        self.folder, self.host, self.model = folder, host, model
        self.temp, self.target, self.proposed = folder / "temp", folder / "target", folder / "proposed"
        self.made = self.temp / "rampgate-gate"
        self.environments: list[dict[str, str]] = []
        for one in (self.temp, self.target):
            one.mkdir(parents=True)
        self.action = action_beside_a_program(folder / "program")
        self.rig = Rig(self.target, model)
        (self.target / "baselines.json").write_text('{"runs": []}')
        committed(self.target)

    def propose(self) -> Path:
        """A pull request without a change yet."""
        subprocess.run(["git", "clone", "--quiet", str(self.target), str(self.proposed)], check=True, timeout=60)
        return self.proposed

    def record(self) -> None:
        """The target's baselines, of its own judges on good answers; brevity blocks."""
        with (self.target / "configs/rules/brevity.yaml").open("a") as file:
            file.write(BLOCKS)
        asked = ("--dataset", "items.jsonl", "--outputs", "outputs.jsonl", "--baselines", "baselines.json", "--record")
        environment = {**os.environ, **self.rig.environment}
        ran("gate", "run", *asked, "--json", environment=environment, folder=self.target)
        assert self.read(self.target / "baselines.json")["runs"]

    def run(self, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs the steps in their order up to one that fails, with the action's defaults and what tests hand in.
        Returns the last that ran."""
        given = {
            "number": "12", "github-token": "t", "model-url": self.model, "model-key": SECRET,
            "dataset": "items.jsonl", "outputs": "outputs.jsonl", **more,
        }  # fmt: skip
        known = contexts(ACTION, given, self.action, self.host.url)
        output = self.temp / "output"
        output.write_text("")
        self.environments.clear()
        for step in STEPS:
            asked = CONDITION.fullmatch(step.get("if", ""))
            if asked and f"{asked[1]}={asked[2]}" not in output.read_text().splitlines():
                continue
            runner = {"RUNNER_TEMP": str(self.temp), "GITHUB_OUTPUT": str(output)}
            environment = step_environment(step, known, runner)
            self.environments.append(environment)
            done = step_run(step, environment, self.folder)
            if done.returncode:
                break
        return done

    def read(self, file: str | Path) -> Any:
        return json.loads((self.made / file).read_text())


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with github() as host, local_model() as model:
        yield Runner(tmp_path, host, model.url)


def test_pc5_fr2_no_limit_no_baseline_and_no_code_of_the_pull_request_has_an_effect(runner: Runner) -> None:
    """PC5 FR-2, AC-3: the answers have become worse than the baseline. A pull request that empties the file of
    baselines, loosens limits and manifest, switches the judge off, rewrites the table of paths, the canaries and the
    action, and brings settings and a program of its own, is blocked all the same."""
    runner.record()
    jsonl(runner.target / "outputs.jsonl", *(answer(n, 0.8 if n % 2 else 1) for n in range(ITEMS)))
    before = committed(runner.target)
    theirs = runner.propose()
    (theirs / "baselines.json").write_text('{"runs": []}')
    rule = theirs / "configs/rules/brevity.yaml"
    rewritten(rule, "floor: 2", "floor: 1")
    rewritten(rule, "tolerance: 0.2", "tolerance: 4")
    rewritten(rule, "threshold: 4", "threshold: 1")
    rewritten(rule, "pre_merge: block", "pre_merge: warn")
    rewritten(rule, "enabled: true", "enabled: false")
    rewritten(theirs / "configs/evaluation_manifest.yaml", "brevity", "helpfulness")
    (theirs / "configs/gate-paths.yaml").write_text("paths: [{gates: [], files: ['**']}]\n")
    (theirs / "configs/canaries.yaml").write_text("canaries: {}\n")
    (theirs / "rampgate.toml").write_text("model_url = 'http://127.0.0.1:1/v1'\n")
    (theirs / "rampgate").mkdir()
    (theirs / "rampgate" / "__main__.py").write_text("raise SystemExit(0)\n")
    (theirs / ".github" / "actions" / "gate").mkdir(parents=True)
    (theirs / ".github" / "actions" / "gate" / "run.sh").write_text("exit 0\n")
    (theirs / "items.jsonl").unlink()
    (theirs / "outputs.jsonl").unlink()
    committed(theirs)

    done = runner.run()
    assert done.returncode == 1, done.stderr
    verdict = runner.read("verdict.json")
    assert verdict["verdict"] == "fail"
    score = verdict["per_judge_scores"]["brevity"]
    assert (score["rule"], score["floor"], score["tolerance"], score["threshold"]) == ("regressed", 2.0, 0.2, 4)
    assert (score["baseline"], score["enforcement"]) == (5.0, "block")
    assert runner.read("plan.json")["gates"] == ["pre_merge", "pre_ramp", "pre_full"]
    assert not (runner.made / "registry/configs/canaries.yaml").exists()
    assert git(runner.target, "rev-parse", "HEAD").strip() == before
    assert git(runner.target, "status", "--porcelain") == "", "the target's checkout is as it was"


def test_pc5_fr12_a_proposed_rubric_is_judged_and_its_shift_waits_for_the_branchs_review(runner: Runner) -> None:
    """PC5 FR-12: another rubric is another judge, for which the target has no baseline. What the author accepts warns
    where the branch merges nothing without a review, and an earlier review is none of it."""
    runner.record()
    committed(runner.target)
    theirs = runner.propose()
    rewritten(theirs / "configs/rules/brevity.yaml", "Rate {{output}}", "Rate, strictly, {{output}}")
    head = committed(theirs)
    soon = (datetime.now(UTC) + timedelta(days=30)).date()
    block = f"judges: [brevity]\njustification: stricter\nexpires: {soon}\n"
    tick = "- [x] The reviewer agrees to every override above\n"
    runner.host.says(f"```accept-baseline-shift\n{block}```\n\n{tick}")
    runner.host.pull["headRefOid"] = head  # the recorded approval is of an earlier commit

    done = runner.run()
    assert done.returncode == 1, done.stderr
    assert runner.read("proposal.json")["taken"] == ["rules/brevity.yaml"]
    score = runner.read("verdict.json")["per_judge_scores"]["brevity"]
    assert (score["rule"], score["baseline"]) == ("regressed", None)
    assert "@owner approved commit" in done.stderr

    runner.host.pull["latestOpinionatedReviews"]["nodes"] = []
    done = runner.run()
    assert done.returncode == 0, done.stderr
    assert runner.read("verdict.json")["accepted"] == ["brevity"]
    assert not list(runner.made.glob("*audit*")), "nothing of an open pull request is logged"

    runner.host.pull["baseRef"] = None
    done = runner.run()
    assert done.returncode == 1, done.stderr
    assert "merges without an approving review" in done.stderr


def test_a_suites_run_of_the_pull_requests_last_commit_is_a_part_of_the_verdict(runner: Runner) -> None:
    """One of an earlier commit fails closed."""
    rewritten(runner.propose() / "configs/rules/brevity.yaml", "You judge answers.", "You judge short answers.")
    told = {
        "suite": "desk", "agent": "desk", "configuration": "a" * 64, "commit": committed(runner.proposed),
        "set": "full", "verdict": "pass", "left": None,
        "comparison": {"score": "ok", "verdict": "pass", "reasons": []},
    }  # fmt: skip
    document = runner.folder / "suite.json"
    document.write_text(json.dumps(told))
    done = runner.run(suite=str(document))
    assert done.returncode == 0, done.stderr
    assert runner.read("verdict.json")["suite"]["commit"] == told["commit"]
    document.write_text(json.dumps(told | {"commit": git(runner.target, "rev-parse", "HEAD").strip()}))
    assert runner.run(suite=str(document)).returncode == 1
    assert {one["code"] for one in runner.read("verdict.json")["reasons"]} == {"suite_unusable"}


def test_pc5_10_2_a_gates_figures_are_written_and_kept_whatever_its_verdict(runner: Runner) -> None:
    (keeps,) = (step for step in UPLOADS if step["with"]["path"].endswith(".prom"))
    assert keeps["uses"].startswith("actions/upload-artifact@")
    assert keeps["if"].startswith("${{ !cancelled() && "), "also of a gate that failed its step"
    assert keeps["with"]["name"].endswith("${{ inputs.vertical && format('-{0}', inputs.vertical) }}"), (
        "a job's gates of two verticals keep their figures apart, and a gate that runs again replaces its own"
    )
    assert keeps["with"]["overwrite"] == "true"
    assert keeps["continue-on-error"] == "true", "and the verdict does not wait for the store of artifacts"
    rewritten(runner.propose() / "configs/rules/brevity.yaml", "You judge answers.", "You judge short answers.")
    committed(runner.proposed)
    for outputs, verdict in (("outputs.jsonl", "pass"), ("worse.jsonl", "fail")):
        jsonl(runner.target / "worse.jsonl", *(answer(n, 0.1) for n in range(ITEMS)))
        assert runner.run(outputs=outputs).returncode == (verdict == "fail")
        figures = Path(keeps["with"]["path"].replace("${{ steps.plan.outputs.folder }}", str(runner.made))).read_text()
        assert 'eval_gate_fired_total{milestone="pre_merge"} 1.0' in figures
        assert f'eval_gate_verdict_total{{milestone="pre_merge",verdict="{verdict}"}} 1.0' in figures
        assert 'eval_gate_duration_seconds_count{milestone="pre_merge"} 1.0' in figures
        assert re.search(r'score_distribution_count{judge_id="brevity",milestone="pre_merge"} [1-9]', figures)


def test_only_the_step_that_judges_has_keys(runner: Runner) -> None:
    rewritten(runner.propose() / "configs/rules/brevity.yaml", "You judge answers.", "You judge short answers.")
    committed(runner.proposed)
    done = runner.run()
    assert done.returncode == 0, done.stderr
    *before, last = runner.environments
    assert len(before) == 2
    assert last["MODEL_KEY"] == SECRET
    assert not any(SECRET in environment.values() for environment in before)
    held = [[name for name in step.get("env", ()) if name.endswith(KEYS)] for step in STEPS]
    assert held == [[], [], ["MODEL_KEY", "CANDIDATE_KEY", "OPIK_API_KEY"]]


def test_a_change_that_triggers_no_gate_runs_none_and_without_a_model_none_passes(runner: Runner) -> None:
    """A pull request from a fork has no key."""
    theirs = runner.propose()
    (theirs / "README.md").write_text("words\n")
    committed(theirs)
    assert runner.run().returncode == 0
    assert not (runner.made / "verdict.json").exists()
    (theirs / "prompts").mkdir()
    (theirs / "prompts" / "greeting.md").write_text("Hello.\n")
    committed(theirs)
    done = runner.run(**{"model-url": "", "model-key": ""})
    assert done.returncode == 1, done.stderr
    assert {one["code"] for one in runner.read("verdict.json")["reasons"]} == {"judge_unavailable"}


def test_a_link_in_the_pull_request_leads_nowhere(runner: Runner) -> None:
    theirs = runner.propose()
    secret = runner.folder / "secret.yaml"
    secret.write_text("prompt: of somebody else\n")
    rule = theirs / "configs/rules/brevity.yaml"
    rule.unlink()
    rule.symlink_to(secret)
    committed(theirs)
    done = runner.run()
    assert done.returncode == 0, done.stderr
    judged = runner.made / "registry/configs/rules/brevity.yaml"
    assert judged.read_text() == (runner.target / "configs/rules/brevity.yaml").read_text()
