"""`rampgate gate run --milestone pre_ramp|pre_full`: a rollout's gate on traces at hand (PC5 §5.5, AC-4, FR-6, FR-11;
contracts §3, §5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid5

import pytest

from evalcore import evaluate_gate
from evalcore.scoring.sampling import share
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.rampgate.ci_gate.gate_commands import codes, commanded, ran, refused, verdict
from tests.unit.rampgate.ci_gate.gate_rig import jsonl
from tests.unit.rampgate.ci_gate.traced_rig import FEW, SPACE, TRACES, Traced, trace


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    yield from commanded(Traced, tmp_path, monkeypatch)


def gate(rig: Traced, *arguments: object, code: int = 0, milestone: str = "pre_ramp") -> dict[str, Any]:
    return verdict("--milestone", milestone, "--traces", rig.traces, *arguments, code=code)


def counted(found: dict[str, Any]) -> dict[str, int]:
    return {judge: score["n"] for judge, score in found["per_judge_scores"].items()}


def test_an_experiments_judges_and_the_safety_judges_score_every_trace(rig: Traced) -> None:
    """PC5 AC-4, §5.5: the configured judges against a recent trace sample; contracts §3: safety judges always run."""
    found = gate(rig, "--judges", "brevity")
    assert (found["milestone"], found["verdict"]) == ("pre_ramp", "pass")
    assert counted(found) == {"brevity": TRACES, "refusal": TRACES, "honesty": TRACES}
    assert found["dataset"] is None
    assert found["sample"]["size"] == TRACES
    assert found["sample"]["composition"] == {"golden": 0, "production": TRACES, "adversarial": 0}


def test_a_list_may_name_one_dimension_of_a_judge(rig: Traced) -> None:
    """contracts §3: gates may name `judge.dimension`."""
    tone = "{dimensions: {tone: {description: How it sounds., threshold: 3}, depth: {description: How deep it goes.}}}"
    rig.registry({"evaluation_manifest.yaml": FEW, "rules/helpfulness.yaml": tone})
    found = gate(rig, "--judges", "helpfulness.tone")
    assert set(found["per_judge_scores"]) == {"helpfulness.tone", "refusal", "honesty"}
    assert found["per_judge_scores"]["helpfulness.tone"]["threshold"] == 3
    assert found["evidence"]["judged"] == 3 * TRACES, "one call for all dimensions"
    assert set(gate(rig, "--judges", "helpfulness.tone,helpfulness")["per_judge_scores"]) > {"helpfulness"}
    assert "helpfulness.tone" in refused(
        "--milestone", "pre_ramp", "--traces", rig.traces, "--judges", "helpfulness.tune"
    )


def test_without_a_list_each_judge_scores_the_traces_of_its_categories(rig: Traced) -> None:
    assert counted(gate(rig)) == {"helpfulness": TRACES, "brevity": TRACES / 2, "refusal": TRACES, "honesty": TRACES}
    rig.written(metadata={"category": "general_qa"})
    assert "brevity" not in gate(rig)["per_judge_scores"]
    jsonl(rig.traces, *(trace(number, category="shop_returns" if number else "elsewhere") for number in range(TRACES)))
    assert set(counted(gate(rig)).values()) == {TRACES}, "of no category that is known: all judges of the gate"


def test_without_a_list_and_without_a_category_nobody_knows_who_decides(rig: Traced) -> None:
    rig.written(metadata={})
    told = refused("--milestone", "pre_ramp", "--traces", rig.traces)
    assert "no trace has a metadata.category that the manifest has" in told
    assert "--judges" in told


@pytest.mark.parametrize("milestone", ["pre_ramp", "pre_full"])
def test_the_limits_are_the_milestones_and_quality_blocks(rig: Traced, milestone: str) -> None:
    """PC5 FR-6, §5.2."""
    safe = {"rules/refusal.yaml": "{threshold: 0.2, floor: 0.2}", "rules/honesty.yaml": "{floor: 0.2}"}
    limits = "{threshold: {default: 5, pre_ramp: 3, pre_full: 4.5}}"
    rig.registry({"evaluation_manifest.yaml": FEW, "rules/brevity.yaml": limits, **safe})
    rig.written(quality=0.75)
    found = gate(rig, "--judges", "brevity", milestone=milestone, code=0 if milestone == "pre_ramp" else 1)
    one = found["per_judge_scores"]["brevity"]
    assert (one["score"], one["threshold"]) == (4.0, {"pre_ramp": 3.0, "pre_full": 4.5}[milestone])
    assert found["verdict"] == {"pre_ramp": "pass", "pre_full": "fail"}[milestone]
    assert one["enforcement"] == "block"


def test_filters_and_sampling_rates_say_which_traces_a_judge_scores(rig: Traced) -> None:
    """PC5 FR-11, §5.2."""
    rates = {"rules/brevity.yaml": "{sampling_rate: 0.5}"}
    only = "{filter: {field: metadata, key: category, operator: equals, value: general_qa}}"
    rig.registry({"evaluation_manifest.yaml": FEW, **rates, "rules/helpfulness.yaml": only})
    found = counted(gate(rig, "--judges", "brevity,helpfulness"))
    sampled = sum(share(uuid5(SPACE, str(number)).bytes) < 0.5 for number in range(TRACES))
    assert 0 < sampled < TRACES
    assert found == {"brevity": sampled, "helpfulness": TRACES / 2, "refusal": TRACES, "honesty": TRACES}


def test_without_a_list_a_judge_whose_filter_fits_no_trace_is_no_judge_of_the_gate(rig: Traced) -> None:
    """As `capability_alignment`, for any agent but one. Who names the judge asks for its items."""
    only = "{filter: {field: metadata, key: agent_id, operator: equals, value: another-agent}}"
    rig.registry({"evaluation_manifest.yaml": FEW, "rules/helpfulness.yaml": only})
    found = gate(rig)
    assert (found["verdict"], "helpfulness" in found["per_judge_scores"]) == ("pass", False)
    told = ran("--milestone", "pre_ramp", "--traces", rig.traces).stdout
    assert "its filter fits no trace: helpfulness" in told
    assert codes(gate(rig, "--judges", "helpfulness", code=1)) == {"insufficient_sample"}


def test_too_few_traces_are_an_insufficient_sample(rig: Traced) -> None:
    rig.written(count=22)
    assert gate(rig, milestone="pre_ramp")["verdict"] == "pass"
    found = gate(rig, milestone="pre_full", code=1)
    assert codes(found) == {"insufficient_sample"}
    assert "22 of the 25 items that pre_full needs, 3 are missing" in found["reasons"][0]["message"]


@pytest.mark.parametrize(("rate", "code"), [(0.19, 1), (0.2, 0)])
def test_coverage_is_held_against_the_floor_where_it_is_given(rig: Traced, rate: float, code: int) -> None:
    assert codes(gate(rig, "--coverage", rate, code=code)) == ({"coverage_too_low"} if code else set())


def test_a_trace_without_an_output_is_unscored_and_counts_at_its_worst(rig: Traced) -> None:
    jsonl(rig.traces, *({**trace(number), **({} if number else {"output": None})} for number in range(TRACES)))
    found = gate(rig, code=1)
    assert found["per_judge_scores"]["helpfulness"]["unscored"] == 1
    assert "judge_unavailable" in codes(found)


def test_a_trace_is_taken_as_opik_exports_it_and_a_second_post_of_one_counts_once(rig: Traced) -> None:
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


def test_the_verdict_is_evaluate_gates(rig: Traced) -> None:
    """contracts §3: one way to decide."""
    rig.written(quality=0.9)
    given = [json.loads(line) for line in rig.traces.read_text().splitlines()]
    registry = built({"evaluation_manifest.yaml": FEW})
    expected = evaluate_gate("pre_full", given, ["helpfulness"], registry=registry)
    found = gate(rig, "--judges", "helpfulness", milestone="pre_full", code=1)
    assert (found["verdict"], found["failing_judges"]) == (expected.verdict, expected.failing_judges)
    assert {judge: one["score"] for judge, one in found["per_judge_scores"].items()} == {
        judge: one.score for judge, one in expected.per_judge_scores.items()
    }


def test_all_reports_tell_of_traces(rig: Traced, tmp_path: Path) -> None:
    files = {name: tmp_path / f"gate.{name}" for name in ("xml", "md", "html")}
    options = [one for file in files.values() for one in ("--report", file)]
    done = ran("--milestone", "pre_full", "--traces", rig.traces, "--report", "github", *options)
    assert done.exit_code == 0, done.output
    for told in (done.stderr, files["md"].read_text(), files["html"].read_text()):
        assert f"{TRACES} traces of /" in told
    assert "pre_full" in files["xml"].read_text()


def test_runs_at_a_rollouts_gate_are_baselines_of_that_milestone(rig: Traced, tmp_path: Path) -> None:
    """contracts §3: per judge version, dataset version and milestone."""
    file = tmp_path / "baselines.json"
    gate(rig, "--baselines", file, "--record")
    assert {run["milestone"] for run in json.loads(file.read_text())["runs"]} == {"pre_ramp"}
    assert gate(rig, "--baselines", file)["per_judge_scores"]["brevity"]["baseline_runs"] == 1
    assert gate(rig, "--baselines", file, milestone="pre_full")["per_judge_scores"]["brevity"]["baseline_runs"] == 0


def test_bad_input_names_what_is_wrong(rig: Traced, tmp_path: Path) -> None:
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
def test_a_broken_file_of_traces_names_the_line(rig: Traced, lines: bytes, told: str) -> None:
    rig.traces.write_bytes(lines)
    assert told in refused("--milestone", "pre_ramp", "--traces", rig.traces)
