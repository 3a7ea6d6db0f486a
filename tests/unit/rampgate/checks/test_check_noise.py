"""`rampgate check noise`: what it measures of a judge that disagrees with itself, and that gates read what it wrote."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evalcore.gates.evaluate import evaluate_gate
from evalcore.judges.evaluator import Task
from evalcore.registry.disk import read_tree, today
from evalcore.registry.registry import Registry, build
from evalcore.scoring.answers import Judgement, Scored, Unscored
from evalcore.scoring.items import dataset_item
from evalcore.validation import checked
from rampgate.checks.judge_noise import measure
from rampgate.cli import app
from rampgate.local.model.server import Running
from tests.unit.evalcore.gates.gate_items import Model, items
from tests.unit.evalcore.registry.registry_disk import built, written
from tests.unit.rampgate.checks.score_commands import said
from tests.unit.rampgate.ci_gate.gate_rig import MANIFEST, environment, jsonl

CONFIRMED = {"rules/honesty.yaml": "confirmation: {asks: 3, failing: 2}"}


def noisy(seed: int, alarms: float) -> Any:
    """A round of answers in which one of so many is a false alarm."""
    draw = random.Random(seed)

    async def asking(tasks: Sequence[Task]) -> list[Judgement]:
        assert all(task.judge.rule.confirmation is None for task in tasks), "a single answer's noise is measured"
        return [Judgement(Scored(float(draw.random() >= alarms))) for _ in tasks]

    return asking


async def test_a_judges_false_alarms_are_measured_with_an_interval_also_of_one_that_confirms() -> None:
    judge = built(CONFIRMED).judge("honesty")
    asked = [dataset_item(one, {}) for one in items(200)]
    (found,) = await measure([noisy(seed, 0.02) for seed in range(5)], [judge], asked)
    noise = found.noise
    assert noise is not None
    assert noise.false_alarm_ci95 is not None
    assert (noise.judge, noise.judge_version, noise.items, noise.asks) == ("honesty", judge.version, 200, 5)
    assert noise.false_alarm_ci95[0] <= 0.02 <= noise.false_alarm_ci95[1]
    assert noise.flip_rate == pytest.approx(2 * 0.02 * 0.98, abs=0.015)


async def test_a_judge_that_often_fails_to_answer_is_not_measured_by_the_rest() -> None:
    async def failing(tasks: Sequence[Task]) -> list[Judgement]:
        return [Judgement(Unscored("an outage") if n % 5 == 0 else Scored(1.0)) for n, _ in enumerate(tasks)]

    (found,) = await measure([failing] * 3, [built().judge("honesty")], [dataset_item(one, {}) for one in items(20)])
    assert (found.noise, found.unscored, found.why) == (None, 12, "12 answers are missing: an outage")


@pytest.fixture
def root(tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = written(tmp_path, {"evaluation_manifest.yaml": MANIFEST})
    for name, value in environment(root, model.url).items():
        monkeypatch.setenv(name, value)
    return root


def check(*words: str) -> tuple[int, str, str]:
    return said("check", "noise", *words)


def registry_at(root: Path) -> Registry:
    files, findings = checked(read_tree(root), today())
    assert [found for found in findings if found.file.endswith("judge-noise.yaml")] == []
    return build(files)


def test_what_is_written_is_read_by_gates(root: Path, tmp_path: Path) -> None:
    """The stand-in answers alike each time: no noise, with an interval, and verdicts that say when it was measured. A
    second run takes the first one's place and leaves other judges' entries."""
    dataset = jsonl(tmp_path / "items.jsonl", *items(12))
    for judge in ("honesty", "helpfulness", "honesty"):
        code, said, told = check("--dataset", str(dataset), "--judge", judge, "--asks", "3", "--write", "--json")
        assert code == 0, told
        (found,) = json.loads(said)["judges"]
        assert (found["judge_id"], found["flip_rate"], found["items"]) == (judge, 0.0, 12)
        assert found["flip_rate_ci95"][1] > 0.2
    text = (root / "judge-noise.yaml").read_text()
    assert text.count("judge: ") == 2
    now = registry_at(root)
    verdict = evaluate_gate("pre_merge", items(25), ["honesty"], model=Model(), registry=now)
    assert verdict.per_judge_scores["honesty"].noise_measured_on is not None


@pytest.mark.parametrize(
    ("words", "says"),
    [(("--judge", "nobody"), "nobody"), (("--dataset", "nowhere.jsonl"), "nowhere.jsonl"), (("--asks", "1"), "asks")],
)
def test_bad_input_is_refused(words: tuple[str, ...], says: str, root: Path, tmp_path: Path) -> None:
    dataset = jsonl(tmp_path / "items.jsonl", *items(2))
    code, _, told = check("--dataset", str(dataset), *words)
    assert (code, says in told) == (2, True), told


def test_the_example_of_the_help_works_beside_a_golden_dataset(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A golden dataset has no outputs: what a person expected is never judged as if an agent had said it."""
    golden = [{name: value for name, value in one.items() if name not in ("output", "tool_calls")} for one in items(4)]
    jsonl(tmp_path / "golden.jsonl", *golden)
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(app, ["check", "noise", "--help"]).output
    program, *words = shlex.split(shown.split("Example: ")[1].splitlines()[0])
    assert (program, *words[:2]) == ("rampgate", "check", "noise")
    code, said, told = check(*words[2:], "--items", "4", "--judge", "honesty", "--json")
    assert code == 0, told
    assert json.loads(said)["judges"][0]["judge_id"] == "honesty"
