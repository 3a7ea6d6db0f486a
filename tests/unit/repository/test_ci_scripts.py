"""What the workflows run, on a repository with an origin of its own and a stand-in for `gh` (PF-9 FR-10, §5.6, Decision
18)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from evalcore.registry.disk import today
from evalcore.reloading import ReloadingRegistry
from tests.action_program import executable, programs
from tests.root import ROOT
from tests.unit.evalcore.gates.accepted_shifts import BLOCKING, filled
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, Rig, answer, environment, jsonl, local_model
from tests.unit.rampgate.ci_gate.github_api import github
from tests.unit.rampgate.inversion.reference_rig import Shop, turned
from tests.unit.rampgate.registry.git_folders import committed as committed_in
from tests.unit.rampgate.registry.git_folders import git
from tests.unit.repository.workflow_files import load

MANIFEST = "configs/evaluation_manifest.yaml"
BRANCH = "registry/resolved-manifest"
GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$GH_LOG"
while (($#)); do
    case $1 in
        --body-file) cat "$2" >> "$GH_LOG" ;;
        author) echo receipts-owner ;;
        number) echo 0 ;;
    esac
    shift
done
"""


@dataclass
class Repository:
    path: Path
    log: Path

    def git(self, *arguments: str) -> str:
        return git(self.path, *arguments)

    def change(self, name: str, old: str, new: str) -> None:
        path = self.path / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        committed_in(self.path)

    def run(self, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        stub = self.log.parent / "bin"
        environment = {**os.environ, "PATH": f"{stub}:{os.environ['PATH']}", "GH_LOG": str(self.log)}
        environment |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        command = [f".ci/{script}", *arguments]
        return subprocess.run(
            command, cwd=self.path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    @property
    def asked(self) -> str:
        return self.log.read_text() if self.log.exists() else ""


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the repository, its origin and a stand-in for `gh`, to be copied."""
    folder = tmp_path_factory.mktemp("committed")
    work, stub = folder / "work", folder / "bin"
    for name in ("configs", "prompts", "specs", ".github", ".ci", "scripts"):
        shutil.copytree(ROOT / name, work / name)
    programs(work)
    (work / ".gitignore").write_text(".venv\n__pycache__\n")
    stub.mkdir()
    executable(stub / "gh", GH)
    found = Repository(work, folder / "gh.log")
    committed_in(work)
    subprocess.run(["git", "init", "--quiet", "--bare", str(folder / "origin")], check=True, timeout=60)
    found.git("remote", "add", "origin", "../origin")
    found.git("push", "--quiet", "origin", "main")
    return folder


@pytest.fixture
def repository(committed: Path, tmp_path: Path) -> Repository:
    shutil.copytree(committed, tmp_path, dirs_exist_ok=True)
    return Repository(tmp_path / "work", tmp_path / "gh.log")


def test_a_manifest_that_is_as_its_sources_give_it_proposes_nothing(repository: Repository) -> None:
    done = repository.run("propose_manifest")
    assert done.returncode == 0, done.stderr
    assert repository.asked == ""


def test_a_manifest_that_changed_is_proposed_once(repository: Repository) -> None:
    repository.change("prompts/components/greeting.xml", '<judge id="greeting_quality"/>', "")
    done = repository.run("propose_manifest")
    assert done.returncode == 0, done.stderr
    assert f"pr create --base main --head {BRANCH}" in repository.asked
    assert "--draft" not in repository.asked
    assert f"workflow run registry.yml --ref {BRANCH}" in repository.asked
    changed = repository.git("diff", "--name-only", "main", f"origin/{BRANCH}").split()
    assert changed == [MANIFEST]
    repository.git("checkout", "--quiet", "main")
    before = repository.asked
    assert repository.run("propose_manifest").returncode == 0
    assert repository.asked == f"{before}auth setup-git\n", "the same proposal is not made again"


def test_a_hand_edit_is_proposed_as_a_draft_and_leaves_the_run_red(repository: Repository) -> None:
    repository.change(MANIFEST, "items: 345", "items: 346")
    done = repository.run("propose_manifest")
    assert done.returncode == 1
    assert "edited by hand" in done.stderr
    assert "--draft" in repository.asked


def test_what_holds_an_error_is_not_proposed(repository: Repository) -> None:
    repository.change("prompts/components/greeting.xml", "greeting_quality", "no_such_judge")
    done = repository.run("propose_manifest")
    assert done.returncode == 1
    assert "no_such_judge" in done.stderr
    assert repository.asked == ""


def propose(repository: Repository, name: str, old: str, new: str) -> None:
    """Pull request 7."""
    repository.git("checkout", "--quiet", "-b", "theirs")
    repository.change(name, old, new)
    repository.git("push", "--quiet", "origin", "theirs:refs/pull/7/head")
    repository.git("checkout", "--quiet", "main")
    repository.git("branch", "--quiet", "-D", "theirs")


def test_the_owners_of_those_who_use_a_changed_category_are_asked(repository: Repository) -> None:
    """PF-9 Decision 18b."""
    propose(repository, "prompts/components/general_qa.xml", '<judge id="ux_quality"/>', "")
    done = repository.run("ask_consumers", "7")
    assert done.returncode == 0, done.stderr
    assert "| receipts | @rampgate/receipts | category general_qa |" in repository.asked
    assert "| rewards_assistant | @rampgate/rewards-assistant | category general_qa |" in repository.asked
    assert "requested_reviewers -f team_reviewers[]=receipts" in repository.asked
    assert "requested_reviewers -f team_reviewers[]=rewards-assistant" in repository.asked


def test_a_person_is_asked_by_name_and_the_author_is_not(repository: Repository) -> None:
    owners = ".github/CODEOWNERS"
    repository.change(owners, "@rampgate/receipts", "@receipts-owner @second a@example.com")
    propose(repository, "prompts/components/general_qa.xml", '<judge id="ux_quality"/>', "")
    assert repository.run("ask_consumers", "7").returncode == 0
    assert "reviewers[]=second" in repository.asked
    assert "reviewers[]=receipts-owner" not in repository.asked
    assert "a@example.com\n" not in repository.asked.replace("| @receipts-owner @second a@example.com |", "")


def test_nobody_is_asked_about_what_nobody_shares(repository: Repository) -> None:
    propose(repository, ".github/CODEOWNERS", "@rampgate/receipts", "@rampgate/others")
    done = repository.run("ask_consumers", "7")
    assert done.returncode == 0, done.stderr
    assert "pr comment" not in repository.asked
    assert "requested_reviewers" not in repository.asked


@pytest.mark.parametrize("number", ["", "7; echo", "main"])
def test_what_is_no_number_is_refused(repository: Repository, number: str) -> None:
    assert repository.run("ask_consumers", number).returncode != 0
    assert repository.asked == ""


def test_pc5_5_2_a_run_on_main_is_recorded_and_proposed_and_later_gates_are_compared_with_it(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PC5 §5.2, FR-12: as shipped the file is empty, which the gate says; once main's run is merged, a score that fell
    has regressed. A push of nothing but baselines records none."""
    baselines = repository.path / ".ci" / "baselines.json"
    assert json.loads(baselines.read_text())["runs"] == []
    for shipped in ("configs", "prompts", "specs"):
        shutil.rmtree(repository.path / shipped)
    with local_model() as model:
        rig = Rig(repository.path, model.url)
        repository.git("add", "--all")
        repository.git("commit", "--quiet", "-m", "a small registry")
        before = repository.git("rev-parse", "HEAD").strip()
        told = {"DATASET": "items.jsonl", "OUTPUTS": "outputs.jsonl", "GITHUB_REPOSITORY": "example/rampgate"}
        for name, value in (rig.environment | told | {"BEFORE": before}).items():
            monkeypatch.setenv(name, value)

        def gate() -> subprocess.CompletedProcess[str]:
            asked = ("--dataset", "items.jsonl", "--outputs", "outputs.jsonl", "--baselines", ".ci/baselines.json")
            return subprocess.run(
                [".venv/bin/rampgate", "gate", "run", *asked, "--json", "--report", "github"],
                cwd=repository.path, env=dict(os.environ), capture_output=True, text=True, timeout=200, check=False,
            )  # fmt: skip

        empty = gate()
        assert ".ci/baselines.json has no run of main, so nothing can have regressed" in empty.stderr
        assert {one["baseline"] for one in json.loads(empty.stdout)["per_judge_scores"].values()} == {None}
        assert "nothing but the baselines" in repository.run("record_baselines").stdout
        repository.change(".gitignore", "__pycache__", "__pycache__/")
        done = repository.run("record_baselines")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "pr create --base main --head registry/baselines" in repository.asked
        changed = repository.git("diff", "--name-only", "main", "origin/registry/baselines").split()
        assert changed == [".ci/baselines.json"]
        repository.git("checkout", "--quiet", "main")
        repository.git("merge", "--quiet", "origin/registry/baselines")
        runs = json.loads(baselines.read_text())["runs"]
        assert {run["commit"] for run in runs} == {repository.git("rev-parse", "HEAD^").strip()}
        jsonl(repository.path / "outputs.jsonl", *(answer(n, 0.8 if n % 2 else 1) for n in range(ITEMS)))
        after = gate()
        assert "has no run of main" not in after.stderr
        assert json.loads(after.stdout)["per_judge_scores"]["brevity"]["rule"] == "regressed"


PULLS = """*/pulls)
            sha=${1#*/commits/}
            jq --arg sha "${sha%/pulls}" -n \
                '[{number: 11, merge_commit_sha: "b"}, {number: 12, merge_commit_sha: $sha}]' |
                jq -r "$3" ;;
        author)"""
"""Of a commit two pull requests: one that has it, and the one that was merged as it."""


@pytest.mark.parametrize("judges", ["[brevity]", "[helpfulness]"])
def test_pc5_fr12_a_fall_that_the_merge_accepted_is_a_baseline_and_another_is_none(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, judges: str
) -> None:
    """PC5 §5.2, §5.5: else what a reviewer agreed to lets no run of main be recorded from then on."""
    (repository.log.parent / "bin" / "gh").write_text(GH.replace("author)", PULLS))
    with local_model() as model, github() as host:
        for shipped in ("configs", "prompts", "specs"):
            shutil.rmtree(repository.path / shipped)
        rig = Rig(repository.path, model.url)
        rig.registry(BLOCKING)
        rig.answers(lambda n: 0.6 if n % 2 else 1)
        before = repository.git("rev-parse", "HEAD").strip()
        repository.git("add", "--all")
        repository.git("commit", "--quiet", "-m", "a merge")
        host.says(filled(judges, expires=str(today() + timedelta(days=30))))
        host.merges(repository.git("rev-parse", "HEAD").strip())
        told = {"DATASET": "items.jsonl", "OUTPUTS": "outputs.jsonl", "GITHUB_REPOSITORY": "example/agents"}
        for name, value in (rig.environment | told | {"BEFORE": before, "RAMPGATE_GITHUB_URL": host.url}).items():
            monkeypatch.setenv(name, value)
        done = repository.run("record_baselines")
    held = judges == "[brevity]"
    assert done.returncode == (not held), done.stdout + done.stderr
    assert ("--head registry/baselines" in repository.asked) is held


PAIR = '{"judge_id": "a", "item_id": %d, "judge_score": %s, "human_score": %d}\n'
SCORES = {
    0: "".join(PAIR % (n, n / 20, n + n % 3) for n in range(20)),
    1: "".join(PAIR % (n, 1 - n / 20, n + n % 3) for n in range(20)),
    2: PAIR % (1, "NaN", 1),
}
"""What a vertical has exported, by the exit code of its check."""


def inversion(
    folder: Path, code: dict[str, int], *words: str, scores: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """The script with the real command, in a repository whose verticals have exported scores that end with a code."""
    scores = scores or [SCORES[status] for status in sorted(SCORES)]
    (folder / ".ci").mkdir()
    for name in ("check_inversion", "kafka_login"):
        shutil.copy(ROOT / ".ci" / name, folder / ".ci")
    programs(folder)
    for name, status in code.items():
        (folder / "specs" / "verticals" / name / "eval").mkdir(parents=True)
        (folder / "specs" / "verticals" / name / "eval" / "human-scores.jsonl").write_text(scores[status])
    return subprocess.run(
        [".ci/check_inversion", *words],
        cwd=folder, env={**os.environ, "GITHUB_STEP_SUMMARY": "", **environment}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def test_an_inversion_check_without_scores_fails_and_says_so(tmp_path: Path) -> None:
    done = inversion(tmp_path, {})
    assert done.returncode == 2
    assert "nothing to check" in done.stderr


@pytest.mark.parametrize(("code", "worst"), [({"a": 0, "b": 0}, 0), ({"a": 1, "b": 0}, 1), ({"a": 2, "b": 1}, 2)])
def test_every_vertical_is_checked_and_the_worst_decides(tmp_path: Path, code: dict[str, int], worst: int) -> None:
    """PF-9 FR-10, by the command that the scheduled run calls."""
    done = inversion(tmp_path, code)
    assert done.returncode == worst, done.stderr
    assert all(f"inversion: specs/verticals/{name}/eval/human-scores.jsonl" in done.stdout for name in code)
    assert ("could not be checked" in done.stderr) is (worst > 1)
    assert ("judge_score: must be a finite number" in done.stderr) is (worst > 1)


def of_version(scores: str) -> str:
    """The scores as those of a shipped judge's version now."""
    version = ReloadingRegistry(ROOT / "configs", ttl=None).current().judge("ux_quality").version
    return scores.replace('"judge_id": "a"', f'"judge_id": "ux_quality", "judge_version": "{version}"')


def test_pf9_fr10_what_the_scheduled_run_finds_suspends_the_judge(tmp_path: Path) -> None:
    """By the command's own file of standings, as gates in CI read it."""
    scores = ["", of_version(SCORES[1])]
    done = inversion(
        tmp_path, {"a": 1}, "--standing", "found.jsonl", scores=scores, RAMPGATE_CONFIGS=str(ROOT / "configs")
    )
    assert done.returncode == 1, done.stderr
    found = json.loads((tmp_path / "found.jsonl").read_text())
    assert (found["judge_id"], found["reason"], found["verdict"]) == ("ux_quality", "inversion", "suspended")


def test_pf9_fr10_the_scheduled_run_holds_judges_against_every_verticals_reference_set(tmp_path: Path) -> None:
    """By the real command: an inverted judge and one that people never scored are findings, told on a page too."""
    shop = Shop(tmp_path)
    shop.people(says=turned)
    shop.round(shop.judge())
    told = environment(shop.root, "http://127.0.0.1:9")
    reports, summary = tmp_path / "reports", tmp_path / "summary"
    told |= {"INVERSION_REPORTS": str(reports), "GITHUB_STEP_SUMMARY": str(summary)}
    done = inversion(tmp_path, {}, "--standing", "found.jsonl", **told)
    assert done.returncode == 1, done.stderr
    (found,) = map(json.loads, (tmp_path / "found.jsonl").read_text().splitlines())
    assert (found["judge_id"], found["verdict"], found["vertical"]) == ("helpfulness", "suspended", "shop")
    for text in ((reports / "shop-reference-set.html").read_text(), summary.read_text()):
        assert "1 inverted" in text
        assert "Judges against people of shop" in text
        assert "people scored none of its turns" in text


def test_a_run_that_can_not_publish_fails_and_leaves_no_password(tmp_path: Path) -> None:
    secrets = tmp_path / "runner"
    secrets.mkdir()
    told = {
        "RAMPGATE_KAFKA": "127.0.0.1:9", "KAFKA_PASSWORD": "hidden", "RUNNER_TEMP": str(secrets),
        "KAFKA_SECURITY": '{"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-512", "user": "ci"}',
        "RAMPGATE_CONFIGS": str(ROOT / "configs"),
    }  # fmt: skip
    done = inversion(tmp_path, {"a": 0}, scores=[of_version(SCORES[0])], **told)
    assert done.returncode == 2, done.stderr
    assert "the results are not published" in done.stderr
    assert list(secrets.iterdir()) == []


def cadence(repository: Repository, workflow: str, job: str) -> subprocess.CompletedProcess[str]:
    """The very command of a workflow's step."""
    steps = load(ROOT / ".github" / "workflows" / f"{workflow}.yml")["jobs"][job]["steps"]
    (command,) = (step["run"] for step in steps if "check cadence" in step.get("run", ""))
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        cwd=repository.path, env={**os.environ, "GITHUB_STEP_SUMMARY": str(repository.path.parent / "summary")},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_pf9_fr4_ac14_the_weekly_run_and_that_of_pull_requests_fail_for_what_is_overdue(repository: Repository) -> None:
    """PF-9 FR-4, AC-9, AC-14: an overdue judge warns before a merge, overdue agreement of annotators fails."""
    due = today() + timedelta(days=60)
    for path in [*repository.path.glob("configs/rules/**/*.yaml"), *repository.path.glob("specs/**/agreement.yaml")]:
        text = re.sub(r"recalibration_due: [\d-]+", f"recalibration_due: {due}", path.read_text())
        path.write_text(re.sub(r"(seeded_on|set_on): [\d-]+", rf"\1: {today()}", text))
    weekly, asked = cadence(repository, "cadence", "cadence"), cadence(repository, "registry", "validate")
    assert (weekly.returncode, asked.returncode) == (0, 0), weekly.stderr + asked.stderr
    late = f"recalibration_due: {today() - timedelta(days=1)}"
    repository.change("configs/rules/receipts/ux_quality.yaml", f"recalibration_due: {due}", late)
    weekly, asked = cadence(repository, "cadence", "cadence"), cadence(repository, "registry", "validate")
    assert (weekly.returncode, asked.returncode) == (1, 0), weekly.stderr + asked.stderr
    assert "threshold of ux_quality: overdue" in " ".join(weekly.stdout.split())
    summary = (repository.path.parent / "summary").read_text()
    assert "Cadence of calibrations: 1 overdue" in summary
    assert re.search(r"❌ overdue \| threshold \| receipts \| ux_quality", summary.replace("\\", ""))
    repository.change("specs/verticals/receipts/eval/agreement.yaml", f"recalibration_due: {due}", late)
    asked = cadence(repository, "registry", "validate")
    assert asked.returncode == 1, asked.stderr
    assert "agreement of receipt_scan: overdue" in " ".join(asked.stdout.split())
