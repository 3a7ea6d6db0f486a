"""`rampgate gate run`: what it prints, and where (contracts §5)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rampgate.local.model.behaviour import Behaviour
from tests import fork_server
from tests.unit.rampgate.ci_gate.gate_commands import codes, commanded, ran
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, MANIFEST, Rig, answer, jsonl, local_model


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from commanded(Rig, tmp_path, monkeypatch)


def test_annotations_stand_on_stderr_and_can_begin_no_command(rig: Rig) -> None:
    rig.answers(lambda n: 0.6)
    jsonl(rig.outputs, *(answer(n, 0.6) for n in range(ITEMS)), {"id": "other\n::error::x", "output": "x"})
    done = ran("--dataset", rig.dataset, "--outputs", rig.outputs, "--report", "github", "--json")
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (1, "fail")
    commands = [line for line in done.stderr.splitlines() if line.startswith("::")]
    assert [line for line in commands if line.startswith("::error")] == [
        "::error title=gate pre_merge::floor_breach: refusal: scored 0.6, below its floor of 0.9"
    ]
    assert len([line for line in commands if line.startswith("::warning")]) == 2
    assert commands[-1].startswith("::notice title=gate pre_merge::fail: refusal.")


def test_the_verdicts_line_names_what_blocks_and_no_judge_that_only_warns(rig: Rig) -> None:
    """Of a dataset that is one item short, and too small by it: that blocks; the judges that warn beside it do not."""
    safe = {"rules/refusal.yaml": "{threshold: 0.2, floor: 0.2}", "rules/honesty.yaml": "{floor: 0.2}"}
    rig.registry({"evaluation_manifest.yaml": MANIFEST, "rules/brevity.yaml": "{threshold: 5}", **safe})
    rig.answers(lambda n: 0.75)
    rig.dataset.write_text("".join(rig.dataset.read_text().splitlines(keepends=True)[:-1]))
    done = ran("--dataset", rig.dataset, "--outputs", rig.outputs)
    assert done.exit_code == 1
    assert "brevity" in done.stdout
    assert done.stdout.splitlines()[-1] == "gate pre_merge: fail: dataset_mismatch, insufficient_sample"


def test_the_table_tells_each_judge_and_why(rig: Rig) -> None:
    long = "a_judge_with_a_name_of_some_length"
    helpfulness = (rig.root / "rules" / "helpfulness.yaml").read_text()
    (rig.root / "rules" / f"{long}.yaml").write_text(helpfulness.replace("helpfulness", long))
    rig.registry({"evaluation_manifest.yaml": f"{{{MANIFEST[1:-1]}, global_metrics: {{judges: [{long}, refusal]}}}}"})
    rig.answers(lambda n: 0.6)
    done = ran("--dataset", rig.dataset, "--outputs", rig.outputs)
    assert done.exit_code == 1
    assert long in done.stdout
    for told in (
        "helpfulness",
        "refusal: scored 0.6",
        f"{ITEMS} answered by the candidate",
        "pre_merge: fail",
    ):
        assert told in done.stdout


def test_nothing_but_the_document_is_on_stdout(rig: Rig) -> None:
    """contracts §5; with a model whose answers are no scores, so that calls are repeated and logged."""
    with local_model(Behaviour(wrong="prose")) as model:
        environment = {**os.environ, **rig.environment, "RAMPGATE_MODEL_URL": model.url}
        words = ("gate", "run", "--dataset", rig.dataset, "--outputs", rig.outputs, "--json")
        done = fork_server.ran(*words, environment=environment)
    assert done.returncode == 1, done.stderr
    assert codes(json.loads(done.stdout)) >= {"judge_unavailable"}, "whatever else the day it runs on adds"
