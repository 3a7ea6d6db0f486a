"""A suite whose candidate is `rampgate remediation run`, on a local API server, and one that forges its answers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.input_files import lines
from streams.cluster.twin import read_objects
from tests.kube_api import KubeApi, replayed
from tests.root import ROOT

FOLDER = ROOT / "examples" / "remediation"
CASES = ("oomkill-completed-openai", "crashloop-probe-denied-claude-vertex")


@pytest.fixture
def api() -> Iterator[KubeApi]:
    api = KubeApi()
    api.operator = replayed([read_objects((FOLDER / "cases" / f"{case}.yaml").read_text()) for case in CASES])
    with api.serving():
        yield api


def ran(api: KubeApi, folder: Path, monkeypatch: pytest.MonkeyPatch, **candidate: Any) -> dict[str, Any]:
    """The score of each case by a run of the shipped suite, judged without a model."""
    suite = yaml.safe_load((FOLDER / "suite.yaml").read_text())
    suite |= {"judges": ["proposal_status"], "score": "proposal_status", "cases": {"file": "cases.jsonl"}, "smoke": 1}
    suite["candidate"] |= {"at_once": 2, **candidate}
    (folder / "suite.yaml").write_text(yaml.safe_dump(suite))
    rows = [row for _, row in lines(FOLDER / "golden.jsonl") if row["id"] in CASES]
    (folder / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cluster, user = {"server": api.url}, {"cluster": "a", "user": "a"}
    config = {
        "current-context": "a", "contexts": [{"name": "a", "context": user}],
        "clusters": [{"name": "a", "cluster": cluster}], "users": [{"name": "a", "user": {}}],
    }  # fmt: skip
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RAMPGATE_CONFIGS", str(ROOT / "configs"))
    words = ["suite", "run", str(folder / "suite.yaml"), "--first-run", "--out", str(folder / "out.jsonl")]
    answered = CliRunner().invoke(app, words)
    assert answered.exit_code in (0, 1), answered.output
    return {row["case_id"]: row["scores"]["proposal_status"] for _, row in lines(folder / "out.jsonl")}


def test_a_suite_runs_each_case_on_the_cluster_and_judges_what_the_cluster_says(
    api: KubeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ran(api, tmp_path, monkeypatch) == dict.fromkeys(CASES, 1.0)
    assert api.twin.objects == {}


def test_a_candidate_that_forges_what_the_cluster_says_gets_no_score(
    api: KubeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Done when 4: forged results."""
    forged = {"output": "done", "proposal_phase": "Completed", "proposal_steps": {}, "proposal_results": {}}
    (tmp_path / "forge.py").write_text(f"print({json.dumps(json.dumps(forged))})\n")

    assert ran(api, tmp_path, monkeypatch, command=["python3", "forge.py"]) == dict.fromkeys(CASES)
    assert api.requests == []
