"""The jobs of a workflow that runs a suite, by the bash of the action's own steps.

GitHub's program `gh` and the judges' model are stand-ins on this machine. What a passing job of main leaves as its
artifact is what later jobs begin with.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.action_program import ACTIONS, action_beside_a_program, contexts, step_environment, step_run
from tests.unit.rampgate.ci_gate.gate_rig import Rig
from tests.unit.rampgate.ci_gate.github_api import HEAD
from tests.unit.repository.gh_program import GhProgram
from tests.unit.repository.workflow_files import load

FOLDER = ACTIONS / "suite"
ACTION: Any = load(FOLDER / "action.yml")
STEPS = [step for step in ACTION["runs"]["steps"] if "run" in step]
SECRET, SEAL, TOKEN = "the-key-of-the-model", "the-secret-of-trusted-jobs", "the-token-of-github"
PART = re.compile(r"inputs\.part == '(\w+)'")
NOT_FRESH = "inputs.fresh == ''"


class Jobs:
    """`target` and `proposed` are checkouts, the program is this repository's. Where git does not know them, main's
    runs name no commit, so that what falls is not asked again."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder, self.model = folder, model
        self.target, self.proposed = folder / "target", folder / "proposed"
        self.gh = GhProgram(folder / "gh")
        self.action = action_beside_a_program(folder / "program", FOLDER)
        self.kept = folder / "nothing"
        self.environments: list[dict[str, str]] = []
        self.outputs: dict[str, dict[str, str]] = {}
        self.target.mkdir()
        Rig(self.target, model)

    def propose(self) -> Path:
        """The suite's folder of a pull request without a change yet."""
        shutil.rmtree(self.proposed, ignore_errors=True)
        shutil.copytree(self.target, self.proposed, ignore=shutil.ignore_patterns(".rampgate"))
        return self.proposed / "suite"

    def job(self, part: str, name: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        """Runs a job with all that a workflow could hand to it, keys too, on a machine of its own but for artifacts.
        `name`: the job's, where it is not the part's."""
        temp = self.folder / (name or part)
        temp.mkdir(exist_ok=True)
        given = {
            "part": part, "suite": "suite/suite.yaml", "number": "12", "github-token": TOKEN, "commit": HEAD,
            "model-url": self.model, "model-key": SECRET, "seal-key": SEAL, "opik-key": SECRET,
            "answers": str(self.folder / "generate" / "rampgate-answers"),
            "documents": str(self.folder / "score" / "rampgate-suite"), "branch": "main",
            "documents-sha256": self.outputs.get("score", {}).get("document-sha256", ""), **more,
        }  # fmt: skip
        known = contexts(ACTION, given, self.action, "")
        known["github.workflow_ref"] = "example/agents/.github/workflows/suite.yml@refs/pull/12/merge"
        (temp / "output").write_text("")
        for step in STEPS:
            asked = PART.findall(step.get("if", ""))
            unless = NOT_FRESH in step.get("if", "") and known["inputs.fresh"]
            if unless or (asked and part not in asked):
                continue
            runner = {
                "RUNNER_TEMP": str(temp), "GITHUB_OUTPUT": str(temp / "output"),
                "GITHUB_STEP_SUMMARY": str(temp / "summary.md"),
                "PATH": f"{self.gh.binaries}:{os.environ['PATH']}",
                "GITHUB_RUN_ID": "7", "GITHUB_RUN_ATTEMPT": "1",
                "GITHUB_SHA": "" if given.get("label") == "main" else HEAD,
            }  # fmt: skip
            environment = step_environment(step, known, runner)
            self.environments.append({**environment, "PART": part})
            done = step_run(step, environment, self.folder)
            if done.returncode:
                break
        told = (line.partition("=") for line in (temp / "output").read_text().splitlines())
        self.outputs[name or part] = out = {one: value for one, _, value in told}
        if done.returncode == 0 and given.get("label") == "main" and "store" in out and "again" not in out:
            self.kept = self.gh.ran(Path(out["store"]))
        return done

    def held(self, **more: str) -> subprocess.CompletedProcess[str]:
        """The job that scores, after the one that has answers made."""
        made = self.job("generate", **more)
        assert made.returncode == 0, made.stderr
        return self.job("score", **more, **{"answers-sha256": self.outputs["generate"]["sha256"]})

    def document(self, job: str = "score") -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / job / "rampgate-suite" / "suite.json").read_text())
        return found
