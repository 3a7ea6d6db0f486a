"""`rampgate gate run` (PC5 §5.5, §9.5; contracts §3): a candidate's answers, asked for or at hand, and those that are
missing; a dataset that is not the manifest's, and evidence that is absent, stale, cut or repeated, fail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalcore.gates.golden import GoldenSet, golden_sample
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.rampgate.ci_gate.gate_commands import codes, gate, ran, refused
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, TRACES, Rig, candidate, item, jsonl, trace


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


COMMIT = "c0ffee" * 6 + "c0ff"


def test_a_smoke_set_is_no_evidence_for_a_merge(rig: Rig) -> None:
    told = {
        "suite": "desk", "agent": "desk", "configuration": "a" * 64, "commit": COMMIT, "set": "smoke",
        "verdict": "pass", "left": None, "comparison": {"score": "ok", "verdict": "pass", "reasons": []},
    }  # fmt: skip
    path = rig.root / "suite.json"
    path.write_text(json.dumps(told))
    found = gate(rig, "--suite", path, "--commit", COMMIT, code=1)
    assert (found["verdict"], codes(found)) == ("fail", {"suite_unusable"})
    assert "is of the smoke set" in found["reasons"][0]["message"]


@pytest.mark.parametrize("other", [{"agent_id": "b"}, {"agent_version": "w"}, {"agent_version": None}])
def test_traces_of_another_version_than_the_one_named_are_refused(rig: Rig, other: dict[str, Any]) -> None:
    jsonl(rig.traces, *(trace(number, **(other if number == 0 else {})) for number in range(TRACES)))
    on = ("--milestone", "pre_ramp", "--traces", rig.traces)
    said = refused(*on, "--agent-id", "a", "--agent-version", "v")
    assert f"1 of {TRACES} traces are not of a v" in said


@pytest.mark.parametrize("output", ["", " \n"])
def test_a_blank_text_is_no_output(rig: Rig, output: str) -> None:
    jsonl(rig.outputs, *({"id": f"i{number}", "output": output} for number in range(ITEMS)))
    assert codes(gate(rig, code=1)) == {"judge_unavailable"}
    jsonl(rig.outputs, *({"id": f"i{n}", "output": output, "tool_calls": [{"name": "f"}]} for n in range(ITEMS)))
    assert "judge_unavailable" not in codes(gate(rig, code=1)), "who calls a tool may say nothing beside it"
