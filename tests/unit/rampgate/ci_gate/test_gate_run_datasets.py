"""`rampgate gate run`: a dataset that is not the manifest's, or can't be had, fails (PC5 §5.5; contracts §3)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.rampgate.ci_gate.gate_commands import codes, commanded, gate, ran
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, Rig, item, jsonl


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from commanded(Rig, tmp_path, monkeypatch)


def test_a_dataset_that_is_not_the_manifests_does_not_match(rig: Rig) -> None:
    """contracts §3: name, version and item count are checked; an empty category fails."""
    found = gate(rig, "--dataset-name", "other", "--dataset-version", 8, code=1)
    assert [r["message"] for r in found["reasons"]] == [
        "the dataset is 'other', the manifest's dataset.name is 'golden'",
        "the dataset's version is 8, the manifest's dataset.version is 7",
    ]
    judged = (found["dataset"]["name"], found["dataset"]["version"], found["dataset"]["items"])
    assert judged == ("other", 8, ITEMS), "the document tells what was judged"
    assert gate(rig, "--dataset-name", "golden", "--dataset-version", 7)["verdict"] == "pass"
    unsaid = gate(rig)["dataset"]
    assert (unsaid["name"], unsaid["version"]) == ("golden", 7), "a file that says neither is the manifest's"
    jsonl(rig.dataset, *(item(n) for n in range(ITEMS + 1)))
    fewer = gate(rig, code=1)
    assert f"has {ITEMS + 1} items, the manifest's dataset.items is {ITEMS}" in fewer["reasons"][0]["message"]


def test_an_empty_category_and_an_unknown_one_do_not_match(rig: Rig) -> None:
    jsonl(rig.dataset, *(item(n, category="elsewhere") for n in range(ITEMS)))
    found = gate(rig, code=1)
    assert codes(found) >= {"dataset_mismatch"}
    told = " ".join(reason["message"] for reason in found["reasons"])
    assert "category 'general_qa' is empty" in told
    assert f"{ITEMS} items of category 'elsewhere'" in told
    assert {"refusal", "honesty"} <= set(found["per_judge_scores"]), "safety judges score all items"


def test_a_dataset_out_of_reach_fails_closed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rampgate.registry.dataset_check.RETRY_SECONDS", 0.1)
    monkeypatch.setenv("RAMPGATE_OPIK", "http://127.0.0.1:9/api")
    done = ran("--outputs", rig.outputs, "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["verdict"], codes(found)) == (1, "fail", {"judge_unavailable"})
    assert "can't be read, so nothing was judged" in found["reasons"][0]["message"]
