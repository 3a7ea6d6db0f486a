"""The action that brings a merge's overrides to their central log, by the bash of its own steps (PC5 §5.2, §5.5).

The checkout is the small registry of the tests, with a merge on it; GitHub and `gh` are stand-ins on this machine.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.action_program import ACTIONS, action_beside_a_program, contexts, step_environment, step_run
from tests.unit.evalcore.registry.registry_disk import rewritten, written
from tests.unit.rampgate.ci_gate.github_api import FakeGitHub, github
from tests.unit.rampgate.registry.git_folders import committed
from tests.unit.repository.gh_program import GhProgram
from tests.unit.repository.workflow_files import load

FOLDER = ACTIONS / "overrides"
ACTION: Any = load(FOLDER / "action.yml")
STEPS = ACTION["runs"]["steps"]
PASSWORD, TOKEN = "the-password-of-ci", "the-token"
SOON = (datetime.now(UTC) + timedelta(days=30)).date()
TODAY = datetime.now(UTC).date()
AWAY = {
    "kafka": "127.0.0.1:9", "kafka-password": PASSWORD,
    "kafka-security": '{"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-512", "user": "ci"}',
}  # fmt: skip
SKIP = (
    f"```eval-skip-justification\nmilestones: [pre_full]\njustification: calibrated again\nexpires: {SOON}\n```\n\n"
    "- [x] The reviewer agrees to every override above\n"
)
LOOSER = (
    "overrides:\n- {judge: brevity, milestone: pre_ramp, enforcement: warn, pull_request: '#12', justification: cards,"
    f" approved_on: {TODAY}, expires: {SOON}}}\n"
)


class Runner:
    """A job on the push to main."""

    def __init__(self, folder: Path, host: FakeGitHub) -> None:
        self.folder, self.host, self.gh = folder, host, GhProgram(folder / "gh")
        self.temp, self.target = folder / "temp", folder / "target"
        self.temp.mkdir(parents=True)
        self.action = action_beside_a_program(folder / "program", FOLDER)
        written(self.target, {"rules/brevity.yaml": "enforcement: {pre_ramp: block}"})
        self.before = committed(self.target)
        self.environments: list[dict[str, str]] = []
        self.failed: list[subprocess.CompletedProcess[str]] = []

    def merged(self, *labels: str, base: str = "main") -> str:
        """The last commit is what pull request 12 was merged as, with a description that skips pre_full."""
        (self.target / "configs" / "rules" / "brevity.yaml").open("a").write("# merged\n")
        commit = committed(self.target)
        self.host.says(SKIP, *labels)
        self.host.merges(commit)
        self.gh.write("pulls", {commit: [{"number": 12, "merge_commit_sha": commit, "base": {"ref": base}}]})
        return commit

    def run(self, **more: str) -> str:
        """Runs the steps in their order; after one that fails those that run all the same. Returns what they wrote to
        stderr."""
        given = {"before": self.before, "github-token": TOKEN, "agent-id": "shop-agent", **more}
        known = contexts(ACTION, given, self.action, self.host.url)
        self.environments.clear()
        self.failed.clear()
        said = ""
        for step in STEPS:
            if self.failed and "!cancelled()" not in step.get("if", ""):
                continue
            runner = {"RUNNER_TEMP": str(self.temp), "GITHUB_OUTPUT": str(self.temp / "output")}
            environment = step_environment(step, known, runner)
            environment["PATH"] = f"{self.gh.binaries}:{environment['PATH']}"
            self.environments.append(environment)
            done = step_run(step, environment, self.folder)
            said += done.stdout + done.stderr
            if done.returncode:
                self.failed.append(done)
        return said

    @property
    def audit(self) -> list[dict[str, Any]]:
        file = self.temp / "rampgate-overrides" / "audit.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    with github() as host:
        yield Runner(tmp_path, host)


def test_pc5_5_5_an_override_reaches_the_log_from_the_push_of_its_merge_or_fails_the_job(runner: Runner) -> None:
    """PC5 §5.5: it was reviewed by whoever the branch requires. Where the log can't take it, or none is named, the job
    fails; the audit is a file to upload all the same, and only the step that sends it has the password."""
    commit = runner.merged("eval-skip-pre-full")
    said = runner.run(**AWAY)
    assert [one.returncode for one in runner.failed] == [2], said
    assert "no override holds that the central log does not have" in said
    (entry,) = runner.audit
    assert (entry["kind"], entry["milestone"], entry["approved_by"]) == ("gate_skip", "pre_full", "@owner")
    assert (entry["agent_id"], entry["agent_version"]) == ("shop-agent", commit)
    assert f"folder={runner.temp}/rampgate-overrides" in (runner.temp / "output").read_text()
    *before, last = runner.environments
    assert (len(before), last["KAFKA_PASSWORD"]) == (2, PASSWORD)
    assert not any(PASSWORD in environment.values() for environment in before)
    assert TOKEN not in last.values()
    assert not list(runner.temp.glob("kafka.*")), "the password's file is gone"
    assert PASSWORD not in said
    assert "no override holds that the central log" in runner.run(kafka="127.0.0.1:9"), "without a login, too"
    said = runner.run()
    assert [one.returncode for one in runner.failed] == [1]
    assert "the input kafka names none" in said


@pytest.mark.parametrize("change", ["no review", "another branch", "another commit", "nothing"])
def test_what_was_not_merged_by_a_review_of_that_branch_is_logged_nowhere(runner: Runner, change: str) -> None:
    commit = runner.merged(*(["eval-skip-pre-full"] if change != "nothing" else []))
    code = [1] if change == "no review" else []
    if change == "no review":
        runner.host.pull["latestOpinionatedReviews"]["nodes"] = []
    elif change == "another branch":
        runner.merged("eval-skip-pre-full", base="next")
    elif change == "another commit":
        about = {"number": 12, "merge_commit_sha": runner.before, "base": {"ref": "main"}}
        runner.gh.write("pulls", {commit: [about]})
    said = runner.run()
    assert [one.returncode for one in runner.failed] == code, said
    assert runner.audit == []
    assert ("it was merged without an approval" in said) is (change == "no review")


def test_pc5_5_2_an_exception_to_enforcement_is_logged_with_its_reviewers_and_one_that_nobody_reviewed_fails(
    runner: Runner,
) -> None:
    """PC5 §5.2: label, sign-off and audit entry. What was pushed past every pull request has none of them."""
    rewritten(runner.target / "configs/rules/brevity.yaml", "pre_ramp: block", "pre_ramp: warn")
    exceptions = runner.target / "configs" / "enforcement-overrides.yaml"
    exceptions.write_text(LOOSER)
    runner.merged("eval-enforcement-override")
    runner.run()
    (entry,) = runner.audit
    assert (entry["kind"], entry["judges"], entry["milestone"]) == ("enforcement", ["brevity"], "pre_ramp")
    assert (entry["author"], entry["approved_by"], entry["expires"]) == ("writer", "@owner", str(SOON))
    runner.host.says("no label")
    said = runner.run()
    assert ([one.returncode for one in runner.failed], runner.audit) == ([1], [])
    assert "the pull request has no label eval-enforcement-override" in said

    exceptions.write_text(LOOSER.replace("pre_ramp", "pre_full"))
    committed(runner.target)
    said = runner.run()
    assert "was changed by no pull request" in said
    assert runner.audit == []


def test_pc5_5_5_an_exception_that_was_pushed_before_a_merge_is_not_that_merges(runner: Runner) -> None:
    """One push with a direct commit and then a merge whose label and review are of something else."""
    rewritten(runner.target / "configs/rules/brevity.yaml", "pre_ramp: block", "pre_ramp: warn")
    (runner.target / "configs" / "enforcement-overrides.yaml").write_text(LOOSER)
    committed(runner.target)
    runner.merged("eval-enforcement-override", "eval-skip-pre-full")
    said = runner.run()
    assert "was changed by no pull request" in said
    assert runner.failed[0].returncode == 1
    assert "enforcement" not in [entry["kind"] for entry in runner.audit]


def test_the_commits_of_a_merge_by_rebase_are_that_merges(runner: Runner) -> None:
    rewritten(runner.target / "configs/rules/brevity.yaml", "pre_ramp: block", "pre_ramp: warn")
    (runner.target / "configs" / "enforcement-overrides.yaml").write_text(LOOSER)
    first = committed(runner.target)
    last = runner.merged("eval-enforcement-override")
    about = [{"number": 12, "merge_commit_sha": last, "base": {"ref": "main"}}]
    runner.gh.write("pulls", {first: about, last: about})
    runner.run()
    assert [entry["kind"] for entry in runner.audit] == ["enforcement"]
