"""What a rollout gate's sample is made of, and what judges see of each part (PC5 §5.5; contracts §3). Pure."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalcore.change_impact import differing
from evalcore.gates.composition import dataset_version, of_part, parts, production_wanted, told, topped_up, went_in
from evalcore.gates.golden import Failed
from evalcore.judges.bindings import bind
from evalcore.manifest.resolving import resolve
from evalcore.registry.disk import read_tree
from evalcore.registry.registry import Registry
from evalcore.scoring.assignments import assign
from evalcore.scoring.items import Item
from evalcore.scoring.sampling import share
from schemas.judges import Milestone
from schemas.manifests import ManifestFile
from tests.unit.evalcore.registry.registry_disk import built

MERGE, RAMP, FULL = Milestone
CANDIDATE = {"url": "http://agents/{agent_version}"}
RED_TEAM = {"name": "red-team", "version": 3, "items": 120}
THEN = "WHAT WAS SAID THEN"


def registry(sample: dict[str, Any] | None = None, **manifest: Any) -> Registry:
    content = {"dataset": {"items": 50}, **manifest, **({"sample": sample} if sample is not None else {})}
    return built({"evaluation_manifest.yaml": json.dumps(content)})


def test_without_a_candidate_nobody_has_outputs_for_a_dataset() -> None:
    known = registry()
    assert (parts(known, RAMP), parts(known, FULL)) == ((), ())
    assert (production_wanted(known, RAMP), production_wanted(known, FULL)) == (200, 600)


def test_pc5_5_5_golden_at_both_gates_and_adversarial_at_pre_full_alone() -> None:
    known = registry({"candidate": CANDIDATE, "adversarial": RED_TEAM})
    assert [part.name for part in parts(known, RAMP)] == ["golden"]
    assert [part.name for part in parts(known, FULL)] == ["golden", "adversarial"]
    assert dataset_version(parts(known, RAMP)) == "golden v7"
    assert dataset_version(parts(known, FULL)) == "golden v7 + red-team v3"


OWN = {"name": "shop-eval", "version": 2, "items": 40, "adversarial": {"name": "edges", "version": 1, "items": 9}}


def test_pc5_fr7_a_verticals_sample_has_its_own_golden_set_and_its_edge_cases_beside_the_platforms() -> None:
    """PC5 §5.6: the dataset is the vertical's, in its project."""
    known = registry({"candidate": CANDIDATE, "adversarial": RED_TEAM}, datasets={"shop": OWN})
    of_shop, of_others = parts(known, FULL, "shop"), parts(known, FULL, "travel")
    assert dataset_version(of_shop) == "shop-eval v2 + red-team v3 + edges v1"
    assert [part.field for part in of_shop] == ["datasets.shop", "sample.adversarial", "datasets.shop.adversarial"]
    assert dataset_version(of_others) == "golden v7 + red-team v3" == dataset_version(parts(known, FULL))
    assert dataset_version(parts(known, RAMP, "shop")) == "shop-eval v2"
    assert of_shop[0].dataset.project == "shop-eval", "the project of the vertical's registration"
    assert production_wanted(known, FULL, "shop") == 600 - 40 - 120 - 9


@pytest.mark.parametrize(
    ("milestone", "golden", "sample", "wanted"),
    [
        (RAMP, 50, {}, 150),
        (RAMP, 345, {}, 100),  # as many as the gate needs at least, whatever the dataset's size
        (FULL, 50, {"adversarial": RED_TEAM}, 430),
        (FULL, 50, {"size": {"pre_full": 1000}}, 600),  # what the pools give a uniform sample of
        (RAMP, 50, {"size": {"pre_ramp": 400}}, 350),
    ],
)
def test_pc5_5_5_production_fills_the_sample_up_and_is_never_less_than_the_minimum(
    milestone: Milestone, golden: int, sample: dict[str, Any], wanted: int
) -> None:
    known = registry({"candidate": CANDIDATE, **sample}, dataset={"items": golden})
    assert production_wanted(known, milestone) == wanted


def judged_by(known: Registry, item: Item) -> set[str]:
    return {judge.id for judge, _ in assign(known.all(), [item])}


def test_an_item_is_scored_by_the_gates_judges_that_fire_on_its_category() -> None:
    known = registry({"candidate": CANDIDATE, "adversarial": RED_TEAM})
    golden, adversarial = parts(known, FULL)

    def of(part: Any, category: str | None) -> set[str]:
        one = {"input": "hi", "metadata": {} if category is None else {"category": category}}
        return judged_by(known, of_part(part, one, 0, {"output": "hello"}, known, None))

    every = {"helpfulness", "brevity", "refusal", "honesty"}
    assert of(golden, "general_qa") == of(adversarial, "general_qa") == {"helpfulness", "refusal", "honesty"}
    assert of(golden, "shop_returns") == every
    assert of(golden, None) == {"refusal", "honesty"}, "of no category: the safety judges"
    assert of(adversarial, None) == of(adversarial, "jailbreak") == every


def test_no_expected_output_becomes_an_output() -> None:
    known = registry({"candidate": CANDIDATE})
    (golden,) = parts(known, RAMP)
    one = {"input": "hi", "expected_output": "by hand", "output": "by hand", "metadata": {"category": "general_qa"}}
    lost = of_part(golden, one, 0, Failed("down"), known, None)
    assert (lost.missing, lost.source.get("output")) == ("down", None)
    given = of_part(golden, one, 0, {"output": "mine", "expected_output": "mine"}, known, None)
    assert (given.source["output"], given.source["expected_output"]) == ("mine", "by hand")


TRACE: dict[str, Any] = {
    "event_id": "e", "trace_id": "t", "response_id": "r", "project_name": "p",
    "started_at": "2026-11-21T12:00:00Z", "ended_at": "2026-11-21T12:00:09Z",
    "input": {"messages": [{"content": "hi"}]}, "output": THEN,
    "tool_calls": [{"name": THEN}], "llm_calls": [{"model": THEN}], "usage": {"cost_usd": THEN},
    "handoffs": [THEN], "proposal": {"name": THEN}, "feedback_scores": [{"name": "helpfulness", "reason": THEN}],
    "judge_scores": [THEN], "anything": THEN,
    "metadata": {
        "user_id": "somebody", "session_id": "s", "environment": "production", "agent_id": "a", "agent_version": "v1",
        "vertical": "shop", "sub_agent": "finder", "category": "general_qa", "prompt_version": THEN,
        "experiment_id": THEN, "arm": THEN,
    },
}  # fmt: skip


def test_contracts_3_nothing_that_came_out_of_a_trace_reaches_a_judge_of_the_candidates_answer() -> None:
    source = went_in(TRACE)
    item = topped_up(b"t" * 16, source, {"output": "mine", "metadata": {"category": "easier"}, "input": "easier"}, "v2")
    assert THEN not in json.dumps(item.source)
    assert (item.source["output"], item.source["tool_calls"]) == ("mine", [])
    assert item.source["input"] == TRACE["input"]
    assert {**item.source["metadata"]} == {
        "user_id": "somebody", "session_id": "s", "environment": "production", "agent_id": "a", "agent_version": "v2",
        "vertical": "shop", "sub_agent": "finder", "category": "general_qa",
    }  # fmt: skip
    helpfulness = registry().judge("helpfulness")
    given = {"output": {"messages": [{"content": "mine"}]}}
    seen = bind(helpfulness, "online", topped_up(b"t" * 16, source, given, "v2").source)
    assert dict(seen) == {"input": "hi", "output": "mine"}


def test_a_topped_up_item_is_sampled_by_the_trace_it_came_in() -> None:
    item = topped_up(b"t" * 16, went_in(TRACE), {"output": "mine"}, "v2")
    assert (item.context, item.share, item.missing) == ("online", share(b"t" * 16), "")
    assert topped_up(b"t" * 16, went_in(TRACE), Failed("down"), "v2").missing == "down"


def test_a_candidate_is_told_what_was_asked_and_not_by_whom() -> None:
    assert told(went_in(TRACE)) == {
        "input": TRACE["input"],
        "metadata": {"vertical": "shop", "sub_agent": "finder", "category": "general_qa"},
    }


def test_a_trace_without_metadata_can_be_asked_again_too() -> None:
    assert told(went_in({"input": "hi", "output": THEN})) == {"input": "hi", "metadata": {}}


def test_pf9_fr7_the_resolved_manifest_carries_the_section_over_and_every_vertical_is_asked() -> None:
    tree, sample = read_tree(Path("configs")), {"candidate": CANDIDATE, "adversarial": RED_TEAM, "scope": "agent"}
    base = tree.files["manifest-base.yaml"] + f"\nsample: {json.dumps(sample)}\n".encode()
    trees = (tree, tree.with_file("manifest-base.yaml", base))
    before, after = (resolve(one, date(2026, 11, 21)).text for one in trees)
    was, now = (ManifestFile.model_validate(yaml.safe_load(text or "")) for text in (before, after))
    assert now.sample.model_dump(mode="json", exclude_unset=True) == sample
    assert differing(was, now).everything
    assert not differing(was, was).everything


def test_a_changed_section_changes_the_config_hash() -> None:
    hashes = {registry(sample).config_hash for sample in (None, {"scope": "agent"}, {"size": {"pre_ramp": 300}})}
    assert len(hashes) == 3
