"""`rampgate manifest sync` on a local Opik: a changed manifest reaches the copies of the judges (PC5 §5.7, FR-10)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rampgate.local.opik.server import start
from tests.asking import HTTP
from tests.contract.opik.sync_rig import two_verticals
from tests.unit.rampgate.ci_gate.gate_rig import beside
from tests.unit.rampgate.cli.registry_copies import Ran, edit, run
from tests.unit.rampgate.registry.git_folders import committed, git


@pytest.fixture
def opik(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A local Opik that runs beside a command's own event loop: its URL."""
    with beside(start(faults=True)) as running:
        for name in ("receipts-eval", "consumer-agent"):
            HTTP.post(f"{running.url}/v1/private/projects", json={"name": name}).raise_for_status()
        monkeypatch.setenv("RAMPGATE_OPIK", running.url)
        monkeypatch.setenv("RAMPGATE_OPIK_RETRY_SECONDS", "0")
        monkeypatch.setenv("RAMPGATE_HTTP", "127.0.0.1:1")
        yield running.url


def sync(configs: Path, *more: str) -> Ran:
    return run(configs, "manifest", "sync", "--yes", "--json", *more)


def part(ran: Ran, vertical: str) -> dict[str, Any]:
    [found] = [one for one in ran.json["verticals"] if one["vertical"] == vertical]
    return dict(found)


def test_a_changed_threshold_reaches_each_verticals_copy_of_the_judge(opik: str, tmp_path: Path) -> None:
    configs = two_verticals(tmp_path)
    assert sync(configs).code == 0
    edit(configs / "manifest-base.yaml", "data_integrity: 0.9", "data_integrity: 0.95")
    assert run(configs, "manifest", "resolve").code == 0
    changed = sync(configs)
    assert changed.code == 0
    for vertical in ("receipts", "rewards_assistant"):
        updated = part(changed, vertical)["update"]
        assert [one["judge"] for one in updated] == ["data_integrity"]
        assert "thresholds" in updated[0]["changes"]
    assert part(sync(configs), "receipts")["update"] == []


def test_pc5_ac7_a_bad_threshold_of_the_manifest_is_reverted_in_git_and_synced_back(opik: str, tmp_path: Path) -> None:
    """PC5 §5.7, §10.3: the same path as for a rule; the judge's version never changed, so its baselines hold."""
    configs = two_verticals(tmp_path)
    for message, threshold in (("shipped", "0.9"), ("too strict for anybody", "0.999")):
        edit(configs / "manifest-base.yaml", "data_integrity: 0.9\n", f"data_integrity: {threshold}\n")
        assert run(configs, "manifest", "resolve").code == 0
        committed(tmp_path, message)
        assert sync(configs).code == 0
    bad = in_opik(opik, "data_integrity")
    git(tmp_path, "revert", "--no-edit", "HEAD")
    assert run(configs, "manifest", "resolve", "--check").code == 0, "what is reverted together fits together"
    left = tmp_path / "sync.prom"
    ran = sync(configs, "--metrics-file", str(left))
    assert [one["judge"] for one in part(ran, "receipts")["update"]] == ["data_integrity"]
    good = in_opik(opik, "data_integrity")
    assert [one["thresholds"]["pre_ramp"] for one in (bad, good)] == [0.999, 0.9]
    assert bad["version"] == good["version"]
    assert f"rampgate_rules_sync_duration_seconds_sum {ran.json['duration_seconds']}" in left.read_text()


def in_opik(opik: str, judge: str) -> dict[str, Any]:
    """What receipts' copy of the judge says of it."""
    listed = HTTP.get(f"{opik}/v1/private/automations/evaluators", params={"size": 100}).json()
    told = [json.loads(one["code"]["variables"]["rampgate_metadata"]) for one in listed["content"]]
    [found] = [one for one in told if one["judge_id"] == judge and one["vertical"] == "receipts"]
    return dict(found)


def test_pf9_ac5_a_scaffolded_vertical_has_its_judges_in_its_own_project_and_moves_nobody_elses(
    opik: str, tmp_path: Path
) -> None:
    """PF-9 AC-8 too: what the others have in Opik stays as it was."""
    configs = two_verticals(tmp_path)
    assert sync(configs).code == 0
    assert run(configs, "vertical", "scaffold", "shopping").code == 0
    edit(configs / "rules/shopping/ux_quality.yaml", "threshold: 0.7", "threshold: 0.9")
    assert run(configs, "manifest", "resolve").code == 0
    HTTP.post(f"{opik}/v1/private/projects", json={"name": "shopping-eval"}).raise_for_status()
    ran = sync(configs)
    assert ran.code == 0
    assert len(part(ran, "shopping")["written"]) == 17
    for other in ("receipts", "rewards_assistant"):
        assert (part(ran, other)["create"], part(ran, other)["update"]) == ([], [])
    listed = HTTP.get(f"{opik}/v1/private/automations/evaluators", params={"size": 100, "name": "ux"}).json()
    metadata = [json.loads(one["code"]["variables"]["rampgate_metadata"]) for one in listed["content"]]
    thresholds = {one["vertical"]: one["thresholds"]["pre_ramp"] for one in metadata if one["judge_id"] == "ux_quality"}
    assert thresholds == {"receipts": 0.7, "rewards_assistant": 0.7, "shopping": 0.9}


def test_the_dataset_is_compared_and_left_as_it_is(opik: str, tmp_path: Path) -> None:
    configs = two_verticals(tmp_path)
    gone = sync(configs)
    assert (gone.code, gone.json["dataset"]["there"]) == (0, False)
    assert {one["check"] for one in gone.json["warnings"]} == {
        "rollout-sample-composed",
        "tolerance-is-seen",
        "dataset-is-there",
    }
    item = {"source": "sdk", "data": {"input": "x", "metadata": {"category": "greting"}}}
    body = {"dataset_name": "consumer-agent-eval", "project_name": "consumer-agent", "items": [item]}
    HTTP.put(f"{opik}/v1/private/datasets/items", json=body).raise_for_status()
    there = sync(configs)
    assert there.json["dataset"]["categories"] == {"greting": 1}
    assert {one["check"] for one in there.json["warnings"]} == {
        "dataset-version-is-there", "dataset-items", "category-has-items", "items-have-a-category",
        "rollout-sample-composed", "tolerance-is-seen",
    }  # fmt: skip
    assert "did you mean 'greeting'?" in there.out
    assert sync(configs).json["dataset"] == there.json["dataset"]
    assert "consumer-agent-eval" in run(configs, "manifest", "sync", "--yes").out


def test_a_manifest_edited_by_hand_is_synced_with_a_warning(opik: str, tmp_path: Path) -> None:
    """A rollback in an emergency is not held up by it (PC5 §5.7)."""
    configs = two_verticals(tmp_path)
    edit(configs / "evaluation_manifest.yaml", "data_integrity: 0.9", "data_integrity: 0.92")
    ran = sync(configs)
    assert ran.code == 0
    assert "manifest-edited-by-hand" in {one["check"] for one in ran.json["warnings"]}


def test_a_manifest_with_an_error_is_not_synced(opik: str, tmp_path: Path) -> None:
    configs = two_verticals(tmp_path)
    edit(configs / "evaluation_manifest.yaml", "data_integrity: 0.9", "data_integrity: 9")
    ran = sync(configs)
    assert ran.code == 1
    assert ran.json["errors"][0]["field"] == "thresholds.data_integrity"
    assert HTTP.get(f"{opik}/v1/private/automations/evaluators").json()["total"] == 0


def test_an_opik_out_of_reach_is_told_in_both_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMPGATE_OPIK", "http://127.0.0.1:1/api")
    monkeypatch.setenv("RAMPGATE_OPIK_RETRY_SECONDS", "0")
    ran = sync(two_verticals(tmp_path))
    assert ran.code == 2
    assert ran.json["dataset"]["error"]
    assert part(ran, "receipts")["error"]
