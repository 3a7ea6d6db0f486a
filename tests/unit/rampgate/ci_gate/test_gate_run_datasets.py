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
    """PC5 AC-3, contracts §3: name, version and item count are checked; an empty category fails."""
    found = gate(rig, "--dataset-version", "other@8", code=1)
    assert [r["message"] for r in found["reasons"]] == [
        "the dataset is 'other', the manifest's dataset.name is 'golden'",
        "the dataset's version is 8, the manifest's dataset.version is 7",
    ]
    judged = (found["dataset"]["name"], found["dataset"]["version"], found["dataset"]["items"])
    assert judged == ("other", 8, ITEMS), "the document tells what was judged"
    assert gate(rig, "--dataset-version", "golden@7")["verdict"] == "pass"
    unsaid = gate(rig)["dataset"]
    assert (unsaid["name"], unsaid["version"]) == ("golden", 7), "a file that says neither is the manifest's"
    jsonl(rig.dataset, *(item(n) for n in range(ITEMS + 1)))
    fewer = gate(rig, code=1)
    assert f"has {ITEMS + 1} items, the manifest's dataset.items is {ITEMS}" in fewer["reasons"][0]["message"]


def test_an_empty_category_and_an_unknown_one_do_not_match(rig: Rig) -> None:
    """PC5 §9.3: every category of the manifest has at least one item."""
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


OWN = {
    "evaluation_manifest.yaml": "{dataset: {items: 345}, datasets: {shop: {name: shop-eval, version: 3, items: 20}}}"
}


def of_shop(rig: Rig, **metadata: object) -> None:
    """The rig's dataset is shop's own: no item is of a category of the platform."""
    rig.registry(OWN)
    jsonl(rig.dataset, *(item(n, category="shop_returns", **metadata) for n in range(ITEMS)))


def test_pc5_fr7_a_vertical_passes_on_its_own_dataset(rig: Rig) -> None:
    """PC5 §5.6: the dataset is the vertical's; the manifest references it. The platform's items and categories are not
    asked of it."""
    of_shop(rig)
    found = gate(rig, "--vertical", "shop", "--dataset-version", "shop-eval@3")
    assert (found["verdict"], found["reasons"]) == ("pass", [])
    assert (found["dataset"]["name"], found["dataset"]["version"]) == ("shop-eval", 3)
    assert codes(gate(rig, code=1)) == {"dataset_mismatch"}, "it is not the platform's"


def test_a_verticals_own_dataset_is_held_to_what_its_extension_says(rig: Rig) -> None:
    """PC5 §9.3: a vertical covers the categories that it declares."""
    of_shop(rig)
    named = ("--vertical", "shop", "--dataset-version", "golden@7")
    jsonl(rig.dataset, *(item(n, category="general_qa") for n in range(ITEMS + 1)))
    assert [reason["message"] for reason in gate(rig, *named, code=1)["reasons"][:4]] == [
        "the dataset is 'golden', the manifest's datasets.shop.name is 'shop-eval'",
        "the dataset's version is 7, the manifest's datasets.shop.version is 3",
        f"{rig.dataset} has 21 items, the manifest's datasets.shop.items is 20",
        "category 'shop_returns' is empty: no item of the dataset is of it",
    ]


def test_a_dataset_whose_items_name_their_vertical_is_the_verticals_unasked(rig: Rig) -> None:
    """One item, one verdict: limits, golden set and baselines are the vertical's, whether it was named or not."""
    of_shop(rig, vertical="shop")
    baselines = rig.folder / "baselines.json"
    unsaid = gate(rig, "--baselines", baselines, "--record")
    assert (unsaid["verdict"], unsaid["vertical"], unsaid["dataset"]["name"]) == ("pass", "shop", "shop-eval")
    said = gate(rig, "--vertical", "shop", "--baselines", baselines)
    assert said["per_judge_scores"]["helpfulness"]["threshold"] == 4.5
    assert [one["baseline_runs"] for one in said["per_judge_scores"].values()] == [1, 1, 1, 1]
