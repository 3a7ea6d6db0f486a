"""What a rollout gate's sample is made of, and what judges see of each part (PC5 §5.5; contracts §3). Pure. What gates
ask for where the manifest says only a part, or nothing (contracts §3: defaults are never zero). Which gates a ramp step
fires, where a failed one halts it, and how many scores a breach needs (PC5 FR-2, §5.5)."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from evalcore.change_impact import differing
from evalcore.gates.composition import dataset_version, of_part, parts, production_wanted, told, topped_up, went_in
from evalcore.gates.decision import Evidence, Judged, decide
from evalcore.gates.limits import Limits
from evalcore.gates.regression import Event, Watched, WatchLimits, look
from evalcore.gates.requests import milestones, of_step
from evalcore.judges.bindings import bind
from evalcore.manifest.resolving import resolve
from evalcore.registry.disk import read_tree
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Scored, collect
from evalcore.scoring.assignments import assign
from evalcore.scoring.items import Failed, Item
from evalcore.scoring.sampling import share
from schemas.judges import Enforcement, Milestone
from schemas.manifests import GateDefaults, ManifestFile, SampleSection
from schemas.verdicts import Action, GateVerdict, VerdictLevel
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


def test_a_milestone_that_is_left_out_keeps_its_default() -> None:
    gates = GateDefaults.model_validate({"minimum_sample": {"pre_ramp": 7}, "window_seconds": {"pre_full": 3600}})
    assert gates.minimum_sample == {MERGE: 20, RAMP: 7, FULL: 300}
    assert gates.window_seconds == {RAMP: 86_400, FULL: 3600}


def test_pc5_fr2_5_5_pre_full_looks_at_more_traces_of_a_longer_time_than_pre_ramp() -> None:
    """A day and a week, about 200 items and 500 to 1,000."""
    assert GateDefaults().window_seconds == {RAMP: 86_400, FULL: 604_800}
    size = SampleSection().size
    assert size[RAMP] == 200
    assert 500 <= size[FULL] <= 1_000


def test_no_judge_needs_more_items_of_its_own_than_the_sample_has() -> None:
    gates = GateDefaults.model_validate({"minimum_sample": {"pre_ramp": 3}, "minimum_scored": {"pre_full": 40}})
    assert [Evidence.at(milestone, gates, 0).scored for milestone in Milestone] == [1, 3, 40]


@pytest.mark.parametrize("said", [{}, {"minimum_sample": {}, "window_seconds": {}}])
def test_nothing_said_is_not_nothing_asked(said: dict[str, object]) -> None:
    assert GateDefaults.model_validate(said) == GateDefaults()
    assert min(GateDefaults().minimum_sample.values()) > 0


@pytest.mark.parametrize(
    "said",
    [
        {"minimum_sample": {"pre_merge": 0}},
        {"minimum_sample": {"premerge": 20}},
        {"window_seconds": {"pre_ramp": 59}},
        {"window_seconds": {"pre_ramp": 86_400_000}},
        {"minimum_scored": {"pre_ramp": 0}},
        {"coverage_floor": 0},
        {"coverage_floor": 1.5},
    ],
)
def test_what_asks_for_nothing_or_for_the_impossible_is_refused(said: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        GateDefaults.model_validate(said)


_, PRE_RAMP, PRE_FULL = Milestone
SAFETY = built({}).judge("refusal")


def gate(milestone: Milestone, score: float) -> GateVerdict:
    limits = Limits.of(4.0, 1.0, 0.25, Enforcement.BLOCK)
    judged = Judged(collect([Scored(score)] * 20, (1.0, 5.0)), limits, (1.0, 5.0))
    return decide(milestone, {"helpfulness": judged}, Evidence(size=20, minimum=20))


@pytest.mark.parametrize(
    ("step", "fired"),
    [
        ((0, 1), (PRE_RAMP,)),
        ((0, 99.9), (PRE_RAMP,)),
        ((0, 100), (PRE_RAMP, PRE_FULL)),
        ((1, 100), (PRE_FULL,)),
        ((99.9, 100), (PRE_FULL,)),
        ((1, 99.9), ()),
        ((5, 25), ()),
        ((0, 0), ()),
        ((100, 100), ()),
    ],
)
def test_pc5_fr2_the_first_step_and_the_one_to_everybody_fire_a_gate(
    step: tuple[float, float], fired: tuple[Milestone, ...]
) -> None:
    assert milestones(*step) == fired


def test_a_failed_first_step_halts_at_zero_and_a_failed_last_one_where_the_rollout_stands() -> None:
    first = of_step(0.0, [gate(PRE_RAMP, 3.0)])
    assert (first.action, first.halt_at_percent) == (Action.HALT, 0.0)
    last = of_step(50.0, [gate(PRE_FULL, 3.0)])
    assert (last.action, last.halt_at_percent) == (Action.HALT, 50.0)
    both = of_step(0.0, [gate(PRE_RAMP, 5.0), gate(PRE_FULL, 3.0)])
    assert (both.verdict, both.halt_at_percent) == (VerdictLevel.FAIL, 0.0)


@pytest.mark.parametrize(("scores", "breached"), [(29, False), (30, True)])
def test_a_breach_needs_the_minimum_of_scores_and_no_more(scores: int, breached: bool) -> None:
    answers = collect([Scored(SAFETY.score_range[0])] * scores, SAFETY.score_range)
    watched = Watched(SAFETY, "assistant", "v7", answers)
    found = look([watched], {}, WatchLimits(minimum=30), datetime(2026, 11, 21, tzinfo=UTC))
    assert [response.event for response in found.responses] == [Event.BREACH] * breached
