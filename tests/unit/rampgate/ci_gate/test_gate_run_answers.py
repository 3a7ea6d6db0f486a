"""`rampgate gate run`: a candidate's answers (PC5 §5.5, §9.5), asked for or at hand, and those that are missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalcore.gates.golden import GoldenSet, golden_sample
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.rampgate.ci_gate.gate_commands import codes, commanded, gate, ran
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, Rig, answer, candidate, item, jsonl


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from commanded(Rig, tmp_path, monkeypatch)


def test_the_candidate_is_asked_and_never_sees_the_expected_output(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMPGATE_CANDIDATE_KEY", "secret")
    with candidate() as fake:
        done = ran("--dataset", rig.dataset, "--candidate", fake.url, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["verdict"] == "pass"
    assert [set(body) for body in fake.seen] == [{"input", "metadata"}] * ITEMS
    assert {body["metadata"]["id"] for body in fake.seen} == {f"i{n}" for n in range(ITEMS)}
    assert set(fake.keys) == {"Bearer secret"}


def test_a_candidate_that_stumbles_is_asked_again(rig: Rig) -> None:
    with candidate(lambda body, times: (503, {}) if times == 1 else (200, {"output": "#quality:1"})) as fake:
        done = ran("--dataset", rig.dataset, "--candidate", fake.url, "--candidate-calls", ITEMS, "--json")
    assert json.loads(done.stdout)["verdict"] == "pass"
    assert len(fake.seen) == 2 * ITEMS


@pytest.mark.parametrize("said", [(500, {}), (404, {}), (200, {}), (200, b"no JSON"), (200, {"output": None})])
def test_what_the_candidate_fails_to_answer_is_unscored_and_fails_closed(rig: Rig, said: tuple[int, Any]) -> None:
    with candidate(lambda body, times: said) as fake:
        done = ran("--dataset", rig.dataset, "--candidate", fake.url, "--candidate-calls", 2, "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["verdict"], codes(found)) == (1, "fail", {"judge_unavailable"})
    assert found["per_judge_scores"]["helpfulness"]["unscored"] == ITEMS
    inputs = {body["input"] for body in fake.seen}
    assert len(inputs) < ITEMS, "a model that gives no answer is not asked for all"


def test_an_item_without_an_answer_counts_at_its_worst(rig: Rig) -> None:
    jsonl(rig.outputs, *(answer(n) for n in range(ITEMS - 1)), {"id": f"i{ITEMS - 1}", "error": "crashed"})
    found = gate(rig, code=1)
    one = found["per_judge_scores"]["helpfulness"]
    assert (one["n"], one["unscored"]) == (ITEMS, 1)
    assert one["score"] == pytest.approx((5 * (ITEMS - 1) + 1) / ITEMS)
    assert "judge_unavailable" in codes(found)


def test_an_output_of_the_datasets_own_is_not_the_candidates(rig: Rig) -> None:
    jsonl(rig.dataset, *({**item(n), "output": "planted #quality:1"} for n in range(ITEMS)))
    jsonl(rig.outputs)
    assert codes(gate(rig, code=1)) == {"judge_unavailable"}


def test_an_answer_replaces_nothing_of_the_items_own() -> None:
    """A candidate that sends an input or a reference back is judged by the dataset's."""
    registry = built()
    given = {"output": "so", "input": "PLANTED", "expected_output": "PLANTED", "metadata": {}, "tool_calls": ["t"]}
    items, _ = golden_sample(GoldenSet([item(1)], "x"), {"i1": given}, registry, None)
    source = items[0].source
    assert (source["output"], source["tool_calls"]) == ("so", ["t"])
    assert {name: source[name] for name in item(1)} == item(1)
