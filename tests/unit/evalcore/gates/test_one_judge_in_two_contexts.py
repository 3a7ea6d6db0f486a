"""PC5 AC-9: one judge in `gate run` (offline), at a ramp's gate and on live traces (online), as its model sees it."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalcore import aevaluate_gate, get_metric_by_id, get_threshold, reloading
from evalcore.scoring.chat_model import ChatModel
from evalcore.scoring.http_client import HttpClient
from rampgate.local.model import judging
from rampgate.local.model.server import Running
from tests.unit.agents.builders import trace as trace_event
from tests.unit.agents.live.live_rig import Rig
from tests.unit.rampgate.ci_gate.gate_commands import commands, verdict
from tests.unit.rampgate.ci_gate.gate_rig import environment, jsonl, local_model
from tests.unit.rampgate.cli.registry_copies import HERE, copied

TEXT = ("where are my points?", "in your wallet #quality:0.9")
AGENTS = ("rewards_assistant", "product_discovery", "offer_discovery", "shopping_list", "prompt-suggestions")
# What remediation's judges read is said by a cluster, and not by a text.
CATEGORIES = re.findall(
    r"^  (?!remediation_)(\w+):\n    description", (HERE / "configs/evaluation_manifest.yaml").read_text(), re.MULTILINE
)


class Timeless(ChatModel):
    """By the rig's clock, which goes by the calls of its model, no time passes."""

    calls = ()


@pytest.fixture(scope="module")
def model() -> Iterator[Running]:
    with local_model() as running:
        yield running


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[dict[str, str]]]:
    """Every question that reached the model, as it came over HTTP."""
    seen: list[list[dict[str, str]]] = []
    answer = judging.answer
    monkeypatch.setattr(judging, "answer", lambda said, form: seen.append(said) or answer(said, form))
    return seen


@pytest.fixture
def configs(tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    root = copied(tmp_path)
    manifest = root / "evaluation_manifest.yaml"
    manifest.write_text(manifest.read_text().replace("items: 345", f"items: {2 * len(CATEGORIES)}"))
    with commands(environment(root, model.url), monkeypatch):
        reloading.use(root)
        yield root


def trace(number: int) -> dict[str, Any]:
    """Of one agent after the other, since judges apply to some of them."""
    event = trace_event(f"r{number}", vertical=None)
    agent = AGENTS[number % len(AGENTS)]
    event["metadata"] |= {"agent_id": agent, "sub_agent": agent}
    content = {
        "trace_id": f"0192a5f0-0000-7000-8000-{number:012d}",
        "input": {"messages": [{"content": TEXT[0]}]},
        "output": {"messages": [{"content": [{"text": TEXT[1]}]}]},
    }
    return event | content


def by_judge(asked: list[list[dict[str, str]]]) -> dict[str, set[tuple[str, str]]]:
    """Rubrics by judge, with the names of the turn's fields."""
    names = {judge.rule.task_introduction: judge.id for judge in reloading.current().all()}
    found = defaultdict(set)
    for system, user in asked:
        rubric, _, _ = system["content"].rpartition("\n")
        fields = json.loads(user["content"].splitlines()[1])
        found[names[rubric.partition("\n\n")[0]]].add((rubric, ", ".join(fields)))
    asked.clear()
    return dict(found)


def offline(configs: Path) -> dict[str, Any]:
    folder = configs.parent
    items = [
        {"input": TEXT[0], "expected_output": "there", "metadata": {"id": f"{name}{n}", "category": name}}
        for name in CATEGORIES
        for n in range(2)
    ]
    dataset = jsonl(folder / "items.jsonl", *items)
    outputs = jsonl(folder / "outputs.jsonl", *({"id": one["metadata"]["id"], "output": TEXT[1]} for one in items))
    return verdict("--dataset", dataset, "--outputs", outputs)


async def test_pc5_ac9_one_judge_has_one_rubric_and_one_threshold_offline_at_a_ramp_and_live(
    configs: Path, model: Running, asked: list[list[dict[str, str]]]
) -> None:
    merged = await asyncio.to_thread(offline, configs)
    assert merged["verdict"] == "pass", merged["reasons"]
    said_offline = by_judge(asked)

    judges = sorted(said_offline)
    ramped = await aevaluate_gate("pre_ramp", [trace(n) for n in range(100)], judges)
    said_at_ramp = by_judge(asked)

    async with HttpClient(4, 10.0) as client:
        rig = Rig(reloading.current())
        rig.model = Timeless(client, model.url)
        await rig.traces(*(trace(n) for n in range(len(AGENTS))))
    said_live = by_judge(asked)

    assert len(judges) >= 10
    for judge in judges:
        assert len(said_offline[judge]) == 1, "one rubric, whatever the item"
        assert said_at_ramp[judge] == said_live[judge] == said_offline[judge], judge
        before, after = merged["per_judge_scores"][judge], ramped.per_judge_scores[judge]
        assert before["judge_version"] == after.judge_version
        assert before["score"] == pytest.approx(after.score), "of the same turn"
        for milestone, score in (("pre_merge", before["threshold"]), ("pre_ramp", after.threshold)):
            assert score == get_threshold(judge, milestone) == get_metric_by_id(judge).threshold(milestone)
        if len(set(reloading.current().judge(judge).thresholds.values())) == 1:
            assert before["threshold"] == after.threshold
