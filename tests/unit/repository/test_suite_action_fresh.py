"""What falls in a pull request's run is answered again in two jobs and decided in a third, by the action's bash."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.rampgate.registry.git_folders import committed, git
from tests.unit.rampgate.suite.suite_branches import CANDIDATE, agent, codes, two_slices
from tests.unit.rampgate.suite.suite_folders import written
from tests.unit.repository.suite_jobs import SEAL, SECRET, TOKEN, Jobs

BY_CHANCE = "kind == 'old' or number > 2"
WORSE = "kind == 'old'"
SIDES = ("baseline", "candidate")


class FreshJobs(Jobs):
    """Jobs on main's history, with a pull request whose prompt is another one."""

    def begin(self, rule: str) -> None:
        """Runs the jobs of main, and those that first answer and score of the pull request, which trips."""
        suite, state = self.target / "suite", self.folder / "state"
        state.mkdir()
        written(suite, two_slices(6), agent(state, rule), candidate=CANDIDATE)
        (suite / "prompt.md").write_text("old")
        (self.target / ".gitignore").write_text(".rampgate/\n__pycache__/\n")
        committed(self.target, "main")
        (self.propose() / "prompt.md").write_text("old")
        done = self.held(label="main", set="full", commit=git(self.target, "rev-parse", "HEAD").strip())
        assert done.returncode == 0, done.stderr
        (self.proposed / "suite" / "prompt.md").write_text("new")
        done = self.held()
        assert done.returncode == 0, self.document()["comparison"]["confirmation"]["why_not"]
        assert self.outputs["score"]["again"] == "true"
        git(self.folder, "clone", "--quiet", self.target, "baseline")
        git(self.folder / "baseline", "checkout", "--quiet", self.outputs["score"]["baseline-commit"])

    def again(self, side: str, **more: str) -> subprocess.CompletedProcess[str]:
        """The job in which that side answers again; its artifact is brought where the last one looks for it."""
        away = self.folder / "no-checkout-here"
        if side == "baseline":
            self.proposed.rename(away)
        own = {"target": "baseline", "proposed": ""} if side == "baseline" else {}
        given = {
            **own,
            "again": str(self.folder / "score" / "rampgate-suite"),
            "again-sha256": self.outputs["score"]["sha256"],
        }
        done = self.job("generate", f"again-{side}", **{**given, **more})
        if side == "baseline":
            away.rename(self.proposed)
        if done.returncode == 0:
            shutil.copytree(self.folder / f"again-{side}" / "rampgate-answers", self.fresh(side).parent)
        return done

    def fresh(self, side: str) -> Path:
        return self.folder / "fresh" / f"suite-fresh-{side}" / "answers.jsonl"

    def confirm(self, **more: str) -> subprocess.CompletedProcess[str]:
        """The job that decides, with the store that score left."""
        left = self.outputs["score"]
        scored = {"scored": str(Path(left["store"]).parent), "scored-sha256": left["store-sha256"]}
        hashes = {f"{side}-sha256": self.outputs.get(f"again-{side}", {}).get("sha256", "") for side in SIDES}
        answers = {"answers-sha256": self.outputs["generate"]["sha256"]}
        return self.job(
            "score", "confirm", **{"fresh": str(self.folder / "fresh"), **answers, **scored, **hashes, **more}
        )

    def why_not(self) -> str:
        found = self.document("confirm")
        assert (found["verdict"], codes(found)) == ("fail", ["slice_regressed"])
        return str(found["comparison"]["confirmation"]["why_not"])


@pytest.fixture
def jobs(tmp_path: Path) -> FreshJobs:
    return FreshJobs(tmp_path, "")


def test_what_tripped_by_chance_passes_and_the_comment_is_of_the_last_word(jobs: FreshJobs) -> None:
    jobs.begin(BY_CHANCE)
    first = jobs.document()
    assert (first["verdict"], codes(first)) == ("fail", ["slice_regressed"]), "and a gate that reads it fails"
    summary = (jobs.folder / "score" / "summary.md").read_text()
    assert "not yet confirmed" in summary
    for side in SIDES:
        done = jobs.again(side)
        assert done.returncode == 0, done.stderr
    before = {log.name: log.read_text() for log in (jobs.folder / "state").iterdir()}
    done = jobs.confirm()
    assert done.returncode == 0, done.stderr
    assert {log.name: log.read_text() for log in (jobs.folder / "state").iterdir()} == before, "it runs neither side"
    assert (jobs.document("confirm")["verdict"], jobs.outputs["confirm"]["document"]) == ("pass", "true")
    assert "again" not in jobs.outputs["confirm"]
    answering = [one for one in jobs.environments if one.get("AGAIN")]
    assert [one["PROPOSED"] for one in answering] == ["", "proposed"]
    assert not [one for one in answering if {SEAL, SECRET, TOKEN} & {*one.values()}], "no side that answers has a key"
    for document, title in (("score", "not yet confirmed"), ("confirm", "no regression")):
        told, sha256 = jobs.folder / document / "rampgate-suite", jobs.outputs[document]["document-sha256"]
        done = jobs.job("comment", **{"documents": str(told), "documents-sha256": sha256})
        assert done.returncode == 0, done.stderr
        (body,) = jobs.gh.comments()
        assert title in body.splitlines()[1]


def test_what_is_worse_again_is_blocked_and_no_file_that_its_job_did_not_make_helps(jobs: FreshJobs) -> None:
    """Any job of a run can put an artifact in another one's place: the baseline would answer badly, by its own word."""
    jobs.begin(WORSE)
    for side in SIDES:
        assert jobs.again(side).returncode == 0
    done = jobs.confirm()
    assert done.returncode == 1, done.stderr
    found = jobs.document("confirm")
    assert (found["verdict"], codes(found)) == ("fail", ["slice_regressed", "cases_broken"])
    assert found["comparison"]["confirmation"]["found"][0]["fresh"]["delta"] == -1.0
    assert "::error" in done.stderr
    file = jobs.fresh("baseline")
    honest, answers = file.read_text(), jobs.folder / "generate" / "rampgate-answers" / "answers.jsonl"
    file.write_text(honest.replace('"good"', '"bad"'))
    assert jobs.confirm().returncode == 1
    assert "the fresh answers of the baseline can't be used" in jobs.why_not()
    file.write_text(honest)
    jobs.fresh("candidate").unlink()
    assert jobs.confirm().returncode == 1
    assert "the fresh answers of the candidate can't be used" in jobs.why_not()
    answers.write_text(answers.read_text().replace('"bad"', '"good"'))
    done = jobs.confirm()
    assert done.returncode == 2, "by now nothing would trip"
    assert "answers.jsonl is not the file that generate wrote" in done.stdout


def test_a_side_answers_only_what_the_scoring_job_wrote_and_without_it_the_plain_rule_stands(jobs: FreshJobs) -> None:
    """A file that names another commit would have the baseline's job run a stranger's code."""
    jobs.begin(BY_CHANCE)
    assert jobs.again("candidate").returncode == 0
    done = jobs.confirm()
    assert done.returncode == 1, done.stderr
    assert "the fresh answers of the baseline can't be used" in jobs.why_not()
    file = jobs.folder / "score" / "rampgate-suite" / "results-again.json"
    told = json.loads(file.read_text())
    file.write_text(json.dumps({**told, "baseline": {**told["baseline"], "commit": "main"}}))
    done = jobs.again("baseline")
    assert done.returncode == 2
    assert "results-again.json is not the file that score wrote" in done.stdout
