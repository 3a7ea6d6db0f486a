"""`rampgate gate run`: a gate from CI (PC5 §5.5, AC-3; contracts §3): who judges what, and what follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rampgate.local.model.behaviour import Behaviour
from tests.unit.rampgate.ci_gate.gate_commands import codes, commanded, gate, refused
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, MANIFEST, Rig, item, jsonl, local_model


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from commanded(Rig, tmp_path, monkeypatch)


def test_all_judges_of_the_categories_in_the_dataset_are_evaluated(rig: Rig) -> None:
    """PC5 AC-3, FR-2: all judges declared in the manifest for affected categories, on the configured dataset; each on
    the items of its categories, the global and safety judges on all."""
    found = gate(rig)
    assert (found["milestone"], found["verdict"], found["failing_judges"]) == ("pre_merge", "pass", [])
    n = {judge: score["n"] for judge, score in found["per_judge_scores"].items()}
    assert n == {"helpfulness": ITEMS, "brevity": ITEMS // 2, "refusal": ITEMS, "honesty": ITEMS}
    assert found["dataset"]["answered"] == ITEMS
    assert found["evidence"]["judged"] == sum(n.values())


def test_a_global_quality_judge_scores_the_items_of_every_category(rig: Rig) -> None:
    """PC5 AC-3, §5.5: `global_metrics` fire beside the category's own judges."""
    rig.registry({"evaluation_manifest.yaml": f"{MANIFEST[:-1]}, global_metrics: {{judges: [refusal, brevity]}}}}"})
    assert gate(rig)["per_judge_scores"]["brevity"]["n"] == ITEMS


def test_a_quality_judge_below_its_threshold_warns_and_a_safety_judge_blocks(rig: Rig) -> None:
    """PC5 AC-3, §5.2: any judge below its threshold fails; quality warns at pre_merge by default, safety blocks."""
    rig.registry({"rules/refusal.yaml": "{threshold: 0.3, floor: 0.2}", "rules/honesty.yaml": "{floor: 0.2}"})
    rig.answers(lambda n: 0.6)
    warned = gate(rig, code=0)
    assert (warned["verdict"], warned["failing_judges"]) == ("warn", ["brevity", "helpfulness"])
    assert codes(warned) == {"below_threshold"}
    rig.registry({})
    blocked = gate(rig, code=1)
    assert (blocked["verdict"], "refusal" in blocked["failing_judges"]) == ("fail", True)


def test_a_quality_judge_that_blocks_at_pre_merge_blocks_the_merge(rig: Rig) -> None:
    """PC5 AC-3, FR-2, §10.1: below its threshold, the pull request is blocked."""
    # 0.6 on one half of the items: only brevity's are low enough, the safety judges are at 0.9 on all.
    rig.answers(lambda n: 0.6 if n % 2 else 1)
    rig.registry(
        {
            "rules/brevity.yaml": "{enforcement: {pre_merge: block}}",
            "rules/refusal.yaml": "{threshold: 0.5, floor: 0.5}",
            "rules/honesty.yaml": "{floor: 0.5}",
        }
    )
    found = gate(rig, code=1)
    assert found["verdict"] == "fail"
    assert found["failing_judges"] == ["brevity"]


def test_sampling_rates_do_not_apply_before_a_merge(rig: Rig) -> None:
    """PC5 FR-11."""
    rig.registry({"rules/helpfulness.yaml": "{sampling_rate: 0.01}"})
    assert gate(rig)["per_judge_scores"]["helpfulness"]["n"] == ITEMS


def test_an_item_may_name_the_judges_that_fit_it_and_safety_judges_fit_all(rig: Rig) -> None:
    jsonl(rig.dataset, *(item(n, applicable_metrics=["brevity"]) for n in range(ITEMS)))
    scores = gate(rig, code=0)["per_judge_scores"]
    assert (scores["brevity"]["n"], scores["helpfulness"]["n"], scores["refusal"]["n"]) == (ITEMS // 2, 0, ITEMS)


def test_a_vertical_has_its_own_threshold(rig: Rig) -> None:
    assert gate(rig, "--vertical", "shop")["per_judge_scores"]["helpfulness"]["threshold"] == 4.5
    assert "no vertical 'nobody'" in refused("--outputs", rig.outputs, "--vertical", "nobody")


def test_a_model_that_is_down_or_not_configured_fails_closed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """PC5 §9.5."""
    with local_model(Behaviour(status=401)) as down:
        monkeypatch.setenv("RAMPGATE_MODEL_URL", down.url)
        assert codes(gate(rig, code=1)) == {"judge_unavailable"}
    monkeypatch.delenv("RAMPGATE_MODEL_URL")
    found = gate(rig, code=1)
    assert codes(found) == {"judge_unavailable"}
    assert "RAMPGATE_MODEL_URL" in found["reasons"][0]["message"]
