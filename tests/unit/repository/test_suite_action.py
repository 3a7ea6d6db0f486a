"""The action that runs a suite on a pull request, by the bash of its own steps, on two checkouts and in three jobs."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.rampgate.ci_gate.gate_rig import local_model
from tests.unit.rampgate.ci_gate.github_api import HEAD
from tests.unit.rampgate.suite.suite_folders import AGENT, case, suite, written
from tests.unit.repository.suite_jobs import ACTION, SEAL, SECRET, STEPS, TOKEN, Jobs

KEYS = ("MODEL_KEY", "SEAL_KEY", "OPIK_API_KEY", "_TOKEN")
SUITE: dict[str, Any] = {"judges": ["helpfulness"], "score": "helpfulness", "safety": ["even"]}
LISTENING = (
    AGENT
    + """

def answer(case, made=answer):
    import os
    with Path(__file__).with_name("environment.log").open("a") as log:
        log.write(repr(dict(os.environ)) + open(f"/proc/{os.getppid()}/environ").read())
    return made(case)
"""
)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with local_model() as model:
        jobs = Jobs(tmp_path, model.url)
        written(jobs.target / "suite", [case(number) for number in range(6)], LISTENING, **SUITE)
        yield jobs


def test_a_worse_candidate_is_blocked_and_commented_whatever_else_the_pull_request_changes(jobs: Jobs) -> None:
    """It takes cases away, names an easier score, loosens the registry, and brings a program and an action of its own:
    all that is the target's."""
    jobs.propose()
    done = jobs.held(label="main", set="full")
    assert done.returncode == 0, done.stderr
    assert jobs.document()["comparison"] is None

    theirs = jobs.propose()
    (theirs / "prompt.md").write_text("bad\n")
    easier = {**suite(**SUITE), "score": "is_good", "judges": [], "safety": [], "checks": {"is_good": {"regex": "."}}}
    (theirs / "suite.yaml").write_text(yaml.safe_dump(easier))
    (theirs / "cases.jsonl").write_text(json.dumps(case(1)) + "\n")
    shutil.rmtree(jobs.proposed / "configs")
    (jobs.proposed / "rampgate.toml").write_text("model_url = 'http://127.0.0.1:1/v1'\n")
    (jobs.proposed / "rampgate").mkdir()
    (jobs.proposed / "rampgate" / "__main__.py").write_text("raise SystemExit(0)\n")
    done = jobs.held()
    assert done.returncode == 1, done.stderr
    found = jobs.document()
    assert (found["verdict"], found["commit"], found["cases"], found["set"]) == ("fail", HEAD, 6, "smoke")
    assert "safety_regressed" in {one["code"] for one in found["comparison"]["reasons"]}
    assert "::error" in done.stderr
    assert "document=true" in (jobs.folder / "score" / "output").read_text().splitlines()
    assert "blocked" in (jobs.folder / "score" / "summary.md").read_text()
    assert not list((jobs.proposed / "suite").glob(".rampgate")), "nothing is written beside a proposal"

    done = jobs.job("comment")
    assert done.returncode == 0, done.stderr
    (body,) = jobs.gh.comments()
    assert body.splitlines()[1] == "## ❌ Suite desk, smoke set: blocked"


def test_the_candidate_is_the_proposals_with_its_values_and_parts_and_sees_no_key(jobs: Jobs) -> None:
    theirs = jobs.propose()
    assert jobs.held(label="main", set="full").returncode == 0
    before = jobs.document()["parts"]
    parts = {"prompt": {"files": ["prompt.md", "agent.py"]}, "tone": {"value": "short"}}
    changed = suite(**SUITE, candidate={"entry": "agent:answer", "parts": parts})
    (theirs / "suite.yaml").write_text(yaml.safe_dump(changed))
    assert jobs.held().returncode == 0
    after = jobs.document()["parts"]
    assert set(after) == {"prompt", "tone"}
    assert after["prompt"] == before["prompt"]
    seen = (theirs / "environment.log").read_text()
    assert seen
    assert not [key for key in (SECRET, SEAL, TOKEN) if key in seen], "neither its own environment nor its runner's"


def test_mains_store_forgets_what_no_run_used_for_as_many_days_as_the_workflow_says(jobs: Jobs) -> None:
    jobs.propose()
    assert jobs.held(label="main", set="full").returncode == 0
    with sqlite3.connect(jobs.kept) as database:
        database.execute("INSERT INTO kept VALUES ('scores:of long ago', x'00')")
        database.execute("UPDATE used SET day = day - 31")
    database.close()
    for days, forgotten in (("31", False), ("30", True)):
        assert jobs.held(label="main", set="full", **{"keep-days": days}).returncode == 0
        with sqlite3.connect(jobs.kept) as database:
            left = {key for (key,) in database.execute("SELECT key FROM kept")}
        database.close()
        assert ("scores:of long ago" not in left) is forgotten
    assert {key.partition(":")[0] for key in left} >= {"results", "runs", "scores", "traces"}


def test_only_the_step_that_scores_has_keys_and_only_the_one_that_comments_the_token() -> None:
    """The token of the step that scores reads: its job may write nothing."""
    held = {step["name"]: [name for name in step["env"] if name.endswith(KEYS)] for step in STEPS}
    assert held == {
        "Set up the program": [], "Have the candidate or the baseline answer": [],
        "Bring main's store": ["GH_TOKEN"],
        "Score the answers": ["GH_TOKEN", "SEAL_KEY", "MODEL_KEY", "OPIK_API_KEY"],
        "Comment on the pull request": ["GH_TOKEN"],
    }  # fmt: skip


def test_a_store_without_the_seal_of_trusted_jobs_is_no_baseline(jobs: Jobs) -> None:
    """Main's jobs had another key, or what they left was put there by somebody else."""
    jobs.propose()
    assert jobs.held(label="main", set="full", **{"seal-key": "another-secret-of-jobs"}).returncode == 0
    done = jobs.held()
    assert done.returncode == 2, done.stderr
    assert "have no seal of RAMPGATE_SEAL_KEY" in done.stderr, "and no one passes by being compared with nothing"


def test_without_a_model_a_judged_suite_fails_closed(jobs: Jobs) -> None:
    """A pull request from a fork has no key."""
    jobs.propose()
    done = jobs.held(**{"model-url": "", "model-key": ""})
    assert done.returncode == 1, done.stderr
    assert jobs.document()["verdict"] == "unscored"


def test_a_fork_without_keys_is_told_that_its_judges_cannot_be_asked(jobs: Jobs) -> None:
    """Line 2 of issue 32: neither "no baseline" nor an error of its own, though it can't read main's sealed run."""
    jobs.propose()
    assert jobs.held(label="main", set="full").returncode == 0
    done = jobs.held(**{"model-url": "", "model-key": "", "seal-key": ""})
    assert done.returncode == 1, done.stderr
    assert "judge_unavailable: " in done.stderr


def test_what_main_never_left_is_no_baseline_and_a_proposal_does_not_pass_by_it(jobs: Jobs) -> None:
    """Not a pull request's own artifact, one of a fork's branch called main, nor one of a main that failed."""
    theirs = jobs.propose()
    assert jobs.held(label="main", set="full").returncode == 0
    store = jobs.kept.read_bytes()
    (theirs / "prompt.md").write_text("bad\n")
    for lost in ({"event": "pull_request"}, {"branch": "theirs"}, {"conclusion": "failure"}):
        jobs.gh.write("runs", [])
        shutil.rmtree(jobs.gh.folder / "artifacts")
        (jobs.folder / "kept.db").write_bytes(store)
        jobs.gh.ran(jobs.folder / "kept.db", **lost)
        done = jobs.held()
        assert done.returncode == 1, done.stderr
        assert "no_baseline: " in done.stderr
    jobs.gh.ran(jobs.folder / "kept.db", event="schedule")
    assert jobs.held().returncode == 1
    assert jobs.document()["comparison"]["verdict"] == "fail", "the weekly run of main has the baseline too"
    (jobs.gh.folder / "runs.json").write_text("no JSON")
    done = jobs.job("score", **{"answers-sha256": jobs.outputs["generate"]["sha256"]})
    assert done.returncode == 1, "a host that does not answer ends the job"
    assert "no_baseline" not in done.stderr


def test_only_who_may_write_lets_a_run_pass_without_a_baseline_by_a_label(jobs: Jobs) -> None:
    jobs.propose()
    made, first = jobs.job("generate"), {"label": {"name": "suite-first-run"}}
    assert made.returncode == 0, made.stderr
    answers = {"answers-sha256": jobs.outputs["generate"]["sha256"]}
    for events, code in (
        ([], 1),
        ([{"event": "labeled", "actor": {"login": "author"}, **first}], 1),
        ([{"event": "labeled", "actor": {"login": "maintainer"}, "label": {"name": "another"}}], 1),
        ([{"event": "labeled", "actor": {"login": "maintainer"}, **first}], 0),
        ([{"event": kind, "actor": {"login": "maintainer"}, **first} for kind in ("labeled", "unlabeled")], 1),
    ):
        jobs.gh.write("events", events)
        assert jobs.job("score", **answers).returncode == code, events
    assert jobs.document()["verdict"] == "no_baseline"


def test_a_suite_that_main_does_not_have_yet_is_run_as_it_is_proposed(jobs: Jobs) -> None:
    jobs.propose()
    shutil.rmtree(jobs.target / "suite")
    (jobs.gh.folder / "runs.json").unlink()  # nor its workflow
    done = jobs.held()
    assert done.returncode == 0, done.stderr
    assert (jobs.document()["verdict"], jobs.document()["baseline"]) == ("pass", None)


def test_the_comment_is_of_the_document_that_the_deciding_job_wrote(jobs: Jobs) -> None:
    """Any job of a run can put an artifact in another one's place."""
    jobs.propose()
    assert jobs.held(label="main", set="full").returncode == 0
    document = jobs.folder / "score" / "rampgate-suite" / "suite.md"
    document.write_text(document.read_text().replace("desk", "best"))
    done = jobs.job("comment")
    assert done.returncode == 2
    assert "suite.md is not the file that this run's verdict was written to" in done.stdout
    assert jobs.gh.comments() == []


def test_a_pull_request_has_one_comment_which_a_later_run_edits(jobs: Jobs) -> None:
    """A stranger's comment with the same mark stays, and so does one of another suite."""
    jobs.propose()
    assert jobs.held(label="main", set="full").returncode == 0
    mark = "<!-- rampgate suite suite/suite.yaml -->"
    others = [
        {"databaseId": 1, "viewerDidAuthor": False, "body": f"{mark}\na stranger's"},
        {"databaseId": 2, "viewerDidAuthor": True, "body": "<!-- rampgate suite other.yaml -->\nanother suite's"},
    ]
    jobs.gh.pull(comments=others)
    assert jobs.job("comment").returncode == 0
    assert jobs.held().returncode == 0
    assert jobs.job("comment").returncode == 0
    *kept, ours = jobs.gh.comments()
    assert kept == [one["body"] for one in others]
    assert ours.startswith(f"{mark}\n## ")
    assert "smoke set" in ours.splitlines()[1], "the second run's, of which the first was the full set"


def test_a_comment_that_can_not_be_written_is_said_and_no_error(jobs: Jobs) -> None:
    jobs.propose()
    assert jobs.held(label="main", set="full").returncode == 0
    jobs.gh.pull(may_write=False)
    done = jobs.job("comment")
    assert done.returncode == 0, "a fork's token is no error: " + done.stderr
    assert "the job's summary has the report" in done.stdout
    jobs.gh.pull(may_write=True, head="a" * 40)
    done = jobs.job("comment")
    assert done.returncode == 0, done.stderr
    assert "the pull request has another commit by now" in done.stdout
    assert jobs.gh.comments() == []


def test_a_long_report_is_cut_below_what_github_takes(jobs: Jobs) -> None:
    jobs.propose()
    assert jobs.held(label="main", set="full").returncode == 0
    report = jobs.folder / "score" / "rampgate-suite" / "suite.md"
    report.write_text("## Suite desk\n" + "a line of what judges said 😀\n" * 4_000)
    assert jobs.job("comment", **{"documents-sha256": sha256(report.read_bytes()).hexdigest()}).returncode == 0
    (body,) = jobs.gh.comments()
    assert len(body.encode("utf-16-le")) // 2 < 65_536
    assert "the report in the job's summary has all" in body.splitlines()[1]
    assert body.rstrip().endswith("😀"), "no line is cut in two"


def test_a_proposal_without_the_suites_file_is_refused_by_its_name(jobs: Jobs) -> None:
    (jobs.propose() / "suite.yaml").unlink()
    done = jobs.job("generate")
    assert done.returncode == 2
    assert "proposed/suite/suite.yaml: can't be read" in done.stderr.replace("\n", "")


def test_the_action_uses_no_other_such_as_the_cache_which_a_job_can_write() -> None:
    assert not [step["uses"] for step in ACTION["runs"]["steps"] if "uses" in step]
