"""Workflow files and what they run (PC5 FR-14; PF-9 FR-10, §5.6, Decision 18)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from evalcore.gates.golden import mismatches
from evalcore.reloading import ReloadingRegistry
from rampgate.ci_gate.inputs import read_dataset, read_outputs
from rampgate.cli import app
from rampgate.gate.run import read_baselines
from tests.action_program import ACTIONS
from tests.root import ROOT
from tests.unit.repository.workflow_files import load

FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SUITES = ("contract", "fault", "stream", "unit")
NOT_YET: set[str] = set()
"""Commands of contracts §5 that a workflow names before they are there; until then its run fails."""
WRITES = {
    ("registry", "consumers"): {"pull-requests"},
    ("registry", "resolve"): {"contents", "pull-requests", "actions"},
    ("inversion", "inversion"): {"issues"},
    ("drift", "weekly"): {"issues"},
    ("cadence", "cadence"): {"issues"},
    ("suite", "comment"): {"pull-requests"},
    ("merged", "baselines"): {"contents", "pull-requests", "actions"},
}
BASE = ("${{ github.event.pull_request.base.sha || github.sha }}", "${{ github.event.pull_request.base.sha }}")
"""A checkout of the target branch, where the event's own is the proposal's."""


def jobs() -> list[Any]:
    return [
        pytest.param(path.stem, name, job, id=f"{path.stem}-{name}")
        for path in FILES
        for name, job in load(path)["jobs"].items()
    ]


def runs() -> Iterator[tuple[str, str]]:
    for path in FILES:
        for job in load(path)["jobs"].values():
            yield from ((path.stem, step["run"]) for step in job["steps"] if "run" in step)


@pytest.mark.parametrize("folder", sorted(ACTIONS.iterdir()), ids=lambda folder: folder.name)
def test_no_expression_stands_in_an_actions_bash_its_scripts_parse_and_its_form_is_githubs(folder: Path) -> None:
    steps = load(folder / "action.yml")["runs"]["steps"]
    assert not [step["run"] for step in steps if "${{" in step.get("run", "")]
    for script in folder.glob("*.sh"):
        subprocess.run(["bash", "-n", str(script)], check=True, timeout=60)
    assert_form("actions", folder / "action.yml")


def assert_form(schema: str, *files: Path) -> None:
    """By GitHub's own schema."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.github-{schema}"]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_they_follow_the_schema_of_github() -> None:
    assert_form("workflows", *FILES)


def test_every_pull_request_is_validated() -> None:
    """PC5 FR-14, §10.1: rules and manifest; PF-9 §5.6: the manifest is what its sources give."""
    workflow = load(ROOT / ".github" / "workflows" / "registry.yml")
    assert workflow["on"]["pull_request"] == "", "without a filter of paths or branches"
    job = workflow["jobs"]["validate"]
    assert "github.event_name == 'pull_request'" in job["if"]
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands == [
        "make setup",
        ".venv/bin/rampgate rules validate --report github --metrics-file rules.prom",
        ".venv/bin/rampgate manifest validate --report github --metrics-file manifest.prom",
        ".venv/bin/rampgate manifest resolve --check --report github",
        ".venv/bin/rampgate check cadence --only agreement --metrics-file cadence.prom",
    ]
    assert not any(step.get("continue-on-error") for step in job["steps"])


def test_what_make_check_and_make_test_run_is_green_before_a_merge() -> None:
    """Remediation test plan 8: all of it, on every pull request, with no step that may fail; Shellcheck is a check."""
    workflow = load(ROOT / ".github" / "workflows" / "ci.yml")
    assert workflow["on"]["pull_request"] == "", "without a filter of paths or branches"
    parts = " ".join(workflow["jobs"]["test"]["strategy"]["matrix"]["part"]).split()
    assert {"check", "unit", "stream", "quick-faults"} <= set(parts)
    assert workflow["jobs"]["test"]["steps"][-1]["run"] == ".ci/run $PART"
    assert "continue-on-error" not in str(workflow)
    recipes = (ROOT / "Makefile").read_text()
    assert re.search(r"^check: lint types contract\b", recipes, re.M)
    assert re.search(r"^lint:.*\n(?:\t.*\n)*\t.*shellcheck .*examples/remediation/scripts", recipes, re.M)


def test_pc5_10_2_pf9_10_2_figures_that_a_workflow_has_written_are_kept_with_its_run() -> None:
    """Also where the command that wrote them ends with 1, for which it is asked. The gate's are the action's own."""
    kept = {}
    for path in FILES:
        for name, job in load(path)["jobs"].items():
            steps = job["steps"]
            written = re.findall(r"--metrics-file (\S+)", " ".join(step.get("run", "") for step in steps))
            (last,) = [
                step for step in steps if "upload-artifact" in step.get("uses", "") and ".prom" in str(step["with"])
            ] or [None]
            assert (last is None) is (not written), (path.stem, name)
            if last is not None:
                assert last["if"].startswith("${{ !cancelled()")
                assert all(Path(file).match(last["with"]["path"]) for file in written)
                assert steps.index(last) > max(n for n, step in enumerate(steps) if "--metrics-file" in str(step))
                kept[path.stem, name] = written
    assert kept == {
        ("registry", "validate"): ["rules.prom", "manifest.prom", "cadence.prom"],
        ("cadence", "cadence"): ["cadence.prom"],
    }


def test_pf9_5_6_the_manifest_is_resolved_every_day_and_on_a_push_to_main_and_proposed() -> None:
    """PF-9 §5.6: by the cron, and where a merge touches components, an extension or whatever else it is made of."""
    workflow = load(ROOT / ".github" / "workflows" / "registry.yml")
    minute, hour, *rest = workflow["on"]["schedule"][0]["cron"].split()
    assert minute.isdigit()
    assert hour.isdigit()
    assert rest == ["*", "*", "*"]
    job = workflow["jobs"]["resolve"]
    assert "github.event_name == 'schedule'" in job["if"]
    assert "github.event_name == 'push'" in job["if"]
    pushed = workflow["on"]["push"]
    assert pushed["branches"] == ["main"]
    assert {"prompts/components/**", "specs/verticals/**", "configs/**"} <= set(pushed["paths"])
    for other in ("validate", "consumers"):
        assert "push" not in workflow["jobs"][other]["if"]
    assert [step["run"] for step in job["steps"] if "run" in step][-1] == ".ci/propose_manifest"


def test_judges_are_held_against_people_every_quarter() -> None:
    """PF-9 FR-10: at least quarterly, and a finding is told."""
    workflow = load(ROOT / ".github" / "workflows" / "inversion.yml")
    _, _, day, months, weekday = workflow["on"]["schedule"][0]["cron"].split()
    assert (day, months, weekday) == ("1", "1,4,7,10", "*")
    steps = workflow["jobs"]["inversion"]["steps"]
    assert ".ci/check_inversion" in [step.get("run") for step in steps]
    assert any(step.get("if") == "failure()" and "gh issue create" in step["run"] for step in steps)
    assert any(step.get("if") == "always()" and step["uses"].startswith("actions/upload-artifact") for step in steps)


def test_pf9_fr10_a_change_of_judges_or_of_the_reference_set_is_held_against_people() -> None:
    """A new version is compared with people before it counts: until then it stands suspended."""
    pushed = load(ROOT / ".github" / "workflows" / "inversion.yml")["on"]["push"]
    assert pushed["branches"] == ["main"]
    for path in ("configs/rules/*.yaml", "prompts/components/**", "specs/verticals/*/eval/reference-set.jsonl"):
        assert path in pushed["paths"]


def test_pf9_fr4_ac14_what_is_overdue_is_looked_for_every_week_and_agreement_on_every_pull_request() -> None:
    """PF-9 FR-4, AC-14."""
    workflow = load(ROOT / ".github" / "workflows" / "cadence.yml")
    _, _, day, month, weekday = workflow["on"]["schedule"][0]["cron"].split()
    assert (day, month, weekday) == ("*", "*", "1")
    steps = workflow["jobs"]["cadence"]["steps"]
    assert '.venv/bin/rampgate check cadence --within-days 30 --report "$GITHUB_STEP_SUMMARY"' in steps[-3]["run"]
    assert steps[-1]["if"] == "failure()"
    assert "gh issue create" in steps[-1]["run"]
    asked = load(ROOT / ".github" / "workflows" / "registry.yml")
    runs = [step.get("run") for step in asked["jobs"]["validate"]["steps"]]
    assert ".venv/bin/rampgate check cadence --only agreement --metrics-file cadence.prom" in runs, (
        "its exit code is the step's"
    )


def test_pf9_fr13_judges_are_checked_for_drift_every_week_and_in_pull_requests_that_touch_them() -> None:
    """PF-9 FR-13: a rule file or a prompt component. The code and the baseline are the target branch's."""
    workflow = load(ROOT / ".github" / "workflows" / "drift.yml")
    _, _, day, month, weekday = workflow["on"]["schedule"][0]["cron"].split()
    assert (day, month, weekday) == ("*", "*", "1")
    assert workflow["on"]["pull_request_target"] == {"paths": ["configs/rules/**", "prompts/components/**"]}
    weekly, changed = (workflow["jobs"][name]["steps"] for name in ("weekly", "changed"))
    assert ".ci/check_drift" in [step.get("run") for step in weekly]
    assert any(step.get("if") == "failure()" and "gh issue create" in step["run"] for step in weekly)
    for steps in (weekly, changed):
        (asked,) = (step for step in steps if ".ci/check_drift" in step.get("run", ""))
        (kept,) = (step for step in steps if step.get("uses", "").startswith("actions/upload-artifact@"))
        assert kept["with"]["path"] == asked["env"]["DRIFT_REPORTS"], "AC-13: what it found is kept for programs"
        assert kept["if"] == "always()"
    assert asked["run"] == 'target/.ci/check_drift "$CONFIGS" "$BASE"'
    assert asked["env"]["RAMPGATE_MODEL_KEY"].startswith(
        "${{ github.event.pull_request.head.repo.full_name == github.repository && secrets."
    )


def folders(target: str) -> set[str]:
    """The test folders that a target of the Makefile runs, and whether it takes or leaves out the slow tests."""
    recipe = re.search(rf"^{target}:.*\n(?:\t.*\n)*?\t(.*pytest.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe, target
    slow = "slow" if "-m slow" in recipe[1] else "quick"
    return {f"{slow} {name}" for name in re.findall(r"tests/(\w+)", recipe[1]) or SUITES}


def test_the_jobs_of_ci_run_every_quick_test_once_and_the_nightly_ones_every_slow_test() -> None:
    (job,) = load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"].values()
    targets = " ".join(job["strategy"]["matrix"]["part"]).split()
    beside = {"check", "wheel"}
    assert sorted(name for target in set(targets) - beside for name in folders(target)) == sorted(folders("test"))
    assert beside <= {*targets}
    assert folders("test") == {f"quick {name}" for name in SUITES}
    (nightly,) = load(ROOT / ".github" / "workflows" / "nightly.yml")["jobs"].values()
    assert nightly["strategy"]["matrix"]["part"] == ["slow", "mutants", "faults", "sdk-recordings"]
    assert folders("slow") == {f"slow {name}" for name in SUITES}


@pytest.mark.parametrize(("workflow", "name", "job"), jobs())
def test_a_job_may_do_what_it_needs_and_no_more(workflow: str, name: str, job: dict[str, Any]) -> None:
    top = load(ROOT / ".github" / "workflows" / f"{workflow}.yml")["permissions"]
    assert top == {"contents": "read"}
    granted = {what for what, level in job.get("permissions", {}).items() if level == "write"}
    assert granted == WRITES.get((workflow, name), set())
    assert int(job["timeout-minutes"]) <= (180 if workflow == "nightly" else 30)


@pytest.mark.parametrize(("workflow", "name", "job"), jobs())
def test_a_job_uses_githubs_own_actions_and_leaves_no_token_behind(
    workflow: str, name: str, job: dict[str, Any]
) -> None:
    used = [step for step in job["steps"] if "uses" in step]
    others = [step["uses"] for step in used if not re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])]
    assert all(name.startswith("./target/.github/actions/") for name in others), "or one of the target branch's own"
    checkouts = [step for step in used if step["uses"].startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] == "false" for step in checkouts)
    foreign = [step["with"]["path"] for step in checkouts if step["with"].get("ref", BASE[0]) not in BASE]
    ours = [step["with"]["path"] for step in checkouts if step["with"].get("ref") in BASE]
    assert ours in ([], ["target"])
    assert foreign in ([], ["proposed"], ["baseline"]), "only the target's own code runs; what answers lies beside it"
    assert not foreign or not WRITES.get((workflow, name)), "and no token that may write is near"
    assert not [step for step in job["steps"] if foreign and "proposed" in step.get("run", "")]
    assert not [step for step in job["steps"] if "working-directory" in step]


def test_pc5_fr2_pre_merge_runs_on_every_pull_request_and_push_by_the_target_branchs_action() -> None:
    """PC5 FR-2, §5.5, §10.1. An edited description and a label run it again; the event is the one whose workflow and
    code are the target branch's, and keys are for pull requests of this repository alone."""
    workflow = load(ROOT / ".github" / "workflows" / "gate.yml")
    (event,) = workflow["on"]
    assert event == "pull_request_target"
    assert {"opened", "synchronize", "reopened", "edited", "labeled"} <= set(workflow["on"][event]["types"])
    assert "branches" not in workflow["on"][event]
    assert "paths" not in workflow["on"][event]
    (job,) = workflow["jobs"].values()
    assert job["permissions"] == {"contents": "read", "pull-requests": "read"}
    assert "env" not in job
    recorded = re.search(r"^baselines=(\S+)$", (ROOT / ".ci" / "record_baselines").read_text(), re.M)
    assert recorded
    keyed = [step for step in job["steps"] if "secrets." in str(step)]
    assert [step["uses"] for step in keyed] == ["./target/.github/actions/gate"]
    assert keyed[0]["with"]["baselines"] == recorded[1], "main's runs stand where it looks (PC5 §5.2, FR-12)"
    assert keyed[0]["with"]["model-key"].startswith(
        "${{ github.event.pull_request.head.repo.full_name == github.repository && secrets."
    )


def test_pc5_5_5_a_merge_leaves_its_overrides_in_the_log_and_its_run_as_a_baseline() -> None:
    """PC5 §5.2, §5.5: from the push to the protected branch alone, none of which is cancelled by the next. Of a pull
    request's gate no step has the log's password, and a baseline waits for the log."""
    workflow = load(ROOT / ".github" / "workflows" / "merged.yml")
    assert workflow["on"] == {"push": {"branches": ["main"]}}
    assert "concurrency" not in workflow
    overrides, baselines = (workflow["jobs"][name] for name in ("overrides", "baselines"))
    assert "concurrency" not in overrides
    assert overrides["permissions"] == {"contents": "read", "pull-requests": "read"}
    (used,) = (step for step in overrides["steps"] if step.get("id") == "overrides")
    assert used["uses"] == "./target/.github/actions/overrides"
    assert used["with"]["kafka"] == "${{ vars.KAFKA }}"
    kept = overrides["steps"][-1]
    assert kept["with"]["path"] == "${{ steps.overrides.outputs.folder }}", "the audit is uploaded"
    assert kept["if"] == "${{ !cancelled() && steps.overrides.outputs.folder }}", "also where it was not logged"
    assert baselines["needs"] == "overrides"
    assert baselines["steps"][-1]["run"] == ".ci/record_baselines"
    assert "KAFKA" not in (ROOT / ".github" / "workflows" / "gate.yml").read_text()
    assert "kafka" not in (ROOT / ".github" / "actions" / "gate" / "action.yml").read_text()


def test_a_suites_candidate_runs_in_a_job_without_keys_and_the_comment_is_written_in_one_without_its_code() -> None:
    """A candidate's code is a stranger's: its job has no secret, no variable and no token that may write."""
    workflow = load(ROOT / ".github" / "workflows" / "suite.yml")
    assert set(workflow["on"]) == {"pull_request", "push", "schedule"}, "a fork's run has no secret"
    asked = workflow["on"]["pull_request"]
    assert {"synchronize", "ready_for_review"} <= set(asked["types"])
    assert ("edited" in asked["types"], asked["branches"]) == (True, ["main"]), "one whose base is edited is run again"
    _, _, day, month, weekday = workflow["on"]["schedule"][0]["cron"].split()
    assert (day, month, weekday) == ("*", "*", "1"), "main's artifact does not expire"
    assert workflow["on"]["push"] == {"branches": ["main"]}
    jobs = workflow["jobs"]
    for name in ("generate", "again-baseline", "again-candidate"):
        for word in ("secrets.", "vars.", "github.token", "permissions"):
            assert word not in str(jobs[name]), (name, word)
    assert "secrets." not in str(jobs["comment"])
    assert checkouts(jobs["comment"]) == ["target"]
    parts = {name: step["with"]["part"] for name, job in jobs.items() for step in job["steps"] if "part" in str(step)}
    answering, scoring = ("generate", "again-baseline", "again-candidate"), ("score", "confirm")
    assert parts == dict.fromkeys(answering, "generate") | dict.fromkeys(scoring, "score") | {"comment": "comment"}
    for name in ("score", "confirm"):
        (step,) = (step for step in jobs[name]["steps"] if step.get("id") == name)
        assert step["with"]["label"] == "${{ github.event_name != 'pull_request' && 'main' || '' }}", (
            "a branch is no baseline"
        )
    assert "ready_for_review" in workflow["on"]["pull_request"]["types"]
    assert workflow["env"]["SET"] == "${{ github.event.pull_request.draft && 'smoke' || 'full' }}", (
        "each push to a pull request that is ready, not the first alone"
    )
    assert "cache" not in str(jobs), "a pull request's jobs can write theirs"
    assert jobs["score"]["permissions"] == {"contents": "read", "actions": "read", "pull-requests": "read"}


def test_where_the_baseline_answers_again_there_is_nothing_of_the_proposal() -> None:
    """Who answers could edit the evidence. And a hash goes by a job's own output, which no other job can write: an
    artifact can be replaced, and jobs of a matrix share their outputs."""
    jobs = load(ROOT / ".github" / "workflows" / "suite.yml")["jobs"]
    baseline, candidate, confirm = (jobs[name] for name in ("again-baseline", "again-candidate", "confirm"))
    assert (checkouts(baseline), checkouts(candidate)) == (["target", "baseline"], ["target", "proposed"])
    assert (own(baseline)["target"], own(baseline)["proposed"]) == ("baseline", "")
    said = str(baseline).replace("'proposed': ''", "")
    assert not [word for word in ("proposed", "head", "suite-answers") if word in said]
    (checkout,) = (step["with"] for step in baseline["steps"] if "baseline" in step.get("with", {}).get("path", ""))
    assert checkout["ref"] == "${{ needs.score.outputs.baseline-commit }}"
    assert not [name for name, job in jobs.items() if "strategy" in job]
    for job in (baseline, candidate):
        assert job["if"] == "${{ needs.score.outputs.again == 'true' }}"
        assert own(job)["again-sha256"] == "${{ needs.score.outputs.sha256 }}"
    assert confirm["if"] == "${{ !cancelled() && needs.score.outputs.again == 'true' }}", "also if a side failed"
    hashes = {name: value for name, value in own(confirm).items() if name.endswith("-sha256")}
    assert hashes == {
        "answers-sha256": "${{ needs.generate.outputs.sha256 }}",
        "scored-sha256": "${{ needs.score.outputs.store-sha256 }}",
        "baseline-sha256": "${{ needs.again-baseline.outputs.sha256 }}",
        "candidate-sha256": "${{ needs.again-candidate.outputs.sha256 }}",
    }
    assert jobs["comment"]["needs"] == ["score", "confirm"]
    (brought,) = (step["with"] for step in jobs["comment"]["steps"] if "download" in step.get("uses", ""))
    confirmed = "needs.confirm.outputs.document == 'true' &&"
    assert brought["name"] == f"${{{{ {confirmed} 'suite-confirmed' || 'suite' }}}}"
    assert own(jobs["comment"])["documents-sha256"] == (
        f"${{{{ {confirmed} needs.confirm.outputs.document-sha256 || needs.score.outputs.document-sha256 }}}}"
    )


def checkouts(job: Any) -> list[str]:
    return [step["with"]["path"] for step in job["steps"] if "ref" in step.get("with", {})]


def own(job: Any) -> dict[str, str]:
    """What a job gives to the suite's action."""
    (found,) = (step["with"] for step in job["steps"] if step.get("uses", "").endswith("actions/suite"))
    return dict(found)


def test_the_gate_of_this_repositorys_own_rules_has_an_item_for_each_of_the_manifest_and_an_answer_to_it(
    tmp_path: Path,
) -> None:
    """PC5 FR-2: the items fit the manifest, whatever it says of them, and baselines are there."""
    subprocess.run(
        [sys.executable, "scripts/stand_in_items.py", str(tmp_path)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=60,
    )  # fmt: skip
    registry = ReloadingRegistry(ROOT / "configs", ttl=None).current()
    golden = read_dataset(tmp_path / "items.jsonl")
    assert list(mismatches(golden, registry)) == []
    assert len(read_outputs(tmp_path / "outputs.jsonl")) == len(golden.items)
    read_baselines(ROOT / ".ci" / "baselines.json", may_be_new=False)


def test_no_word_of_a_pull_request_reaches_a_shell() -> None:
    assert [(name, run) for name, run in runs() if "${{" in run] == []


def test_the_scripts_are_there_and_can_be_run() -> None:
    named = {word for _, run in runs() for word in run.split() if word.startswith(".ci/")}
    assert len(named) >= 4
    for name in named:
        assert (ROOT / name).stat().st_mode & 0o111, name
        subprocess.run(["bash", "-n", name], cwd=ROOT, check=True, timeout=60)


def test_every_command_they_call_is_one_of_ours() -> None:
    texts = [run for _, run in runs()] + [path.read_text() for path in (ROOT / ".ci").iterdir() if path.is_file()]
    called = {found for text in texts for found in re.findall(r"\.venv/bin/rampgate ([a-z]+ [a-z]+)", text)}
    commands: Any = get_command(app)

    def known(command: str) -> bool:
        group, name = command.split()
        return group in commands.commands and name in getattr(commands.commands[group], "commands", {})

    assert {"rules validate", "manifest validate", "manifest resolve", "check inversion"} <= called
    assert {command for command in called if not known(command)} == NOT_YET
