"""`rampgate gate run --milestone pre_ramp|pre_full`: a rollout's gate on traces at hand (PC5 §5.5, AC-4, FR-6, FR-11;
contracts §3, §5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rampgate.ci_gate.gate_commands import codes, ran, refused, verdict
from tests.unit.rampgate.ci_gate.gate_rig import TRACES, Rig, jsonl, trace


def gate(rig: Rig, *arguments: object, code: int = 0, milestone: str = "pre_ramp") -> dict[str, Any]:
    return verdict("--milestone", milestone, "--traces", rig.traces, *arguments, code=code)


def counted(found: dict[str, Any]) -> dict[str, int]:
    return {judge: score["n"] for judge, score in found["per_judge_scores"].items()}


def test_an_experiments_judges_and_the_safety_judges_score_every_trace(rig: Rig) -> None:
    """PC5 AC-4, §5.5: the configured judges against a recent trace sample; contracts §3: safety judges always run."""
    found = gate(rig, "--judges", "brevity")
    assert (found["milestone"], found["verdict"]) == ("pre_ramp", "pass")
    assert counted(found) == {"brevity": TRACES, "refusal": TRACES, "honesty": TRACES}
    assert found["dataset"] is None
    assert found["sample"]["size"] == TRACES
    assert found["sample"]["composition"] == {"golden": 0, "production": TRACES, "adversarial": 0}


def test_a_list_may_name_one_dimension_of_a_judge(rig: Rig) -> None:
    """contracts §3: gates may name `judge.dimension`."""
    tone = "{dimensions: {tone: {description: How it sounds., threshold: 3}, depth: {description: How deep it goes.}}}"
    rig.registry({"rules/helpfulness.yaml": tone})
    found = gate(rig, "--judges", "helpfulness.tone")
    assert set(found["per_judge_scores"]) == {"helpfulness.tone", "refusal", "honesty"}
    assert found["per_judge_scores"]["helpfulness.tone"]["threshold"] == 3
    assert found["evidence"]["judged"] == 3 * TRACES, "one call for all dimensions"
    assert set(gate(rig, "--judges", "helpfulness.tone,helpfulness")["per_judge_scores"]) > {"helpfulness"}
    assert "helpfulness.tone" in refused(
        "--milestone", "pre_ramp", "--traces", rig.traces, "--judges", "helpfulness.tune"
    )


def test_without_a_list_each_judge_scores_the_traces_of_its_categories(rig: Rig) -> None:
    assert counted(gate(rig)) == {"helpfulness": TRACES, "brevity": TRACES / 2, "refusal": TRACES, "honesty": TRACES}
    rig.written(metadata={"category": "general_qa"})
    assert "brevity" not in gate(rig)["per_judge_scores"]
    jsonl(rig.traces, *(trace(number, category="shop_returns" if number else "elsewhere") for number in range(TRACES)))
    assert set(counted(gate(rig)).values()) == {TRACES}, "of no category that is known: all judges of the gate"


def test_without_a_list_and_without_a_category_nobody_knows_who_decides(rig: Rig) -> None:
    rig.written(metadata={})
    told = refused("--milestone", "pre_ramp", "--traces", rig.traces)
    assert "no trace has a metadata.category that the manifest has" in told
    assert "--judges" in told


@pytest.mark.parametrize("milestone", ["pre_ramp", "pre_full"])
def test_the_limits_are_the_milestones_and_quality_blocks(rig: Rig, milestone: str) -> None:
    """PC5 FR-6, §5.2."""
    safe = {"rules/refusal.yaml": "{threshold: 0.2, floor: 0.2}", "rules/honesty.yaml": "{floor: 0.2}"}
    limits = "{threshold: {default: 5, pre_ramp: 3, pre_full: 4.5}}"
    rig.registry({"rules/brevity.yaml": limits, **safe})
    rig.written(quality=0.75)
    found = gate(rig, "--judges", "brevity", milestone=milestone, code=0 if milestone == "pre_ramp" else 1)
    one = found["per_judge_scores"]["brevity"]
    assert (one["score"], one["threshold"]) == (4.0, {"pre_ramp": 3.0, "pre_full": 4.5}[milestone])
    assert found["verdict"] == {"pre_ramp": "pass", "pre_full": "fail"}[milestone]
    assert one["enforcement"] == "block"


def test_without_a_list_a_judge_whose_filter_fits_no_trace_is_no_judge_of_the_gate(rig: Rig) -> None:
    """As `capability_alignment`, for any agent but one. Who names the judge asks for its items."""
    only = "{filter: {field: metadata, key: agent_id, operator: equals, value: another-agent}}"
    rig.registry({"rules/helpfulness.yaml": only})
    found = gate(rig)
    assert (found["verdict"], "helpfulness" in found["per_judge_scores"]) == ("pass", False)
    told = ran("--milestone", "pre_ramp", "--traces", rig.traces).stdout
    assert "its filter fits no trace: helpfulness" in told
    named = gate(rig, "--judges", "helpfulness", code=1)
    assert codes(named) == {"insufficient_sample"}
    assert "its filter (agent_id = another-agent) fits none" in " ".join(one["message"] for one in named["reasons"])


def test_too_few_traces_are_an_insufficient_sample(rig: Rig) -> None:
    rig.written(count=22)
    assert gate(rig, milestone="pre_ramp")["verdict"] == "pass"
    found = gate(rig, milestone="pre_full", code=1)
    assert codes(found) == {"insufficient_sample"}
    assert "22 of the 25 items that pre_full needs, 3 are missing" in found["reasons"][0]["message"]


def test_a_trace_is_taken_as_opik_exports_it_and_a_second_post_of_one_counts_once(rig: Rig) -> None:
    def exported(number: int) -> dict[str, Any]:
        one = trace(number)
        return {"id": one.pop("trace_id"), **one, "name": "turn", "feedback_scores": None}

    jsonl(
        rig.traces,
        *({"trace": exported(number), "spans": []} for number in range(10)),
        *(exported(number) for number in range(10, TRACES)),
        {**trace(3, quality=0), "output": None},
        trace(3),
    )
    found = gate(rig)
    assert (found["verdict"], found["sample"]["size"]) == ("pass", TRACES)
    rig.written()
    assert gate(rig)["sample"]["fingerprint"] == found["sample"]["fingerprint"]


def test_all_reports_tell_of_traces(rig: Rig, tmp_path: Path) -> None:
    files = {name: tmp_path / f"gate.{name}" for name in ("xml", "md", "html")}
    options = [one for file in files.values() for one in ("--report", file)]
    done = ran("--milestone", "pre_full", "--traces", rig.traces, "--report", "github", *options)
    assert done.exit_code == 0, done.output
    for told in (done.stderr, files["md"].read_text(), files["html"].read_text()):
        assert f"{TRACES} traces of /" in told
    assert "pre_full" in files["xml"].read_text()


def test_runs_at_a_rollouts_gate_are_baselines_of_that_milestone(rig: Rig, tmp_path: Path) -> None:
    """contracts §3: per judge version, dataset version and milestone."""
    file = tmp_path / "baselines.json"
    gate(rig, "--baselines", file, "--record")
    assert {run["milestone"] for run in json.loads(file.read_text())["runs"]} == {"pre_ramp"}
    assert gate(rig, "--baselines", file)["per_judge_scores"]["brevity"]["baseline_runs"] == 1
    assert gate(rig, "--baselines", file, milestone="pre_full")["per_judge_scores"]["brevity"]["baseline_runs"] == 0


def test_bad_input_names_what_is_wrong(rig: Rig, tmp_path: Path) -> None:
    on = ("--milestone", "pre_ramp", "--traces", rig.traces)
    assert "--traces FILE" in refused("--milestone", "pre_full")
    assert refused(*on, "--judges", "brevty").startswith("--judges[0]: ")
    assert "did you mean 'brevity'" in refused(*on, "--judges", "brevty")
    assert "the list is empty" in refused(*on, "--judges", " , ")
    assert refused(*on, "--dataset", rig.dataset, "--outputs", rig.outputs).startswith("--dataset, --outputs: not at")
    before = ("--outputs", rig.outputs)
    assert refused(*before, "--traces", rig.traces).startswith("--traces: not at pre_merge")
    assert refused(*before, "--judges", "brevity", "--coverage", 1).startswith("--judges, --coverage: not at pre_merge")
    assert "no vertical 'nobody'" in refused(*on, "--vertical", "nobody")
    assert "can't be read" in refused("--milestone", "pre_ramp", "--traces", tmp_path / "no")


@pytest.mark.parametrize(
    ("lines", "told"),
    [(b"{", ":1: must be JSON"), (b'{"input": "x"}\n[]', ":2: must be an object"), (b'{"output": "x"}', ":1: input:")],
)
def test_a_broken_file_of_traces_names_the_line(rig: Rig, lines: bytes, told: str) -> None:
    rig.traces.write_bytes(lines)
    assert told in refused("--milestone", "pre_ramp", "--traces", rig.traces)
