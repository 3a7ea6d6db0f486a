"""`evaluate_gate`: a gate's verdict in one call (PC5 §5.4, §5.5, FR-11, AC-3, AC-9, §9.5; contracts §3)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evalcore
from evalcore import GateVerdict, JudgeScore, aevaluate_gate, evaluate_gate
from evalcore.gates import evaluate
from evalcore.judges.evaluator import Prompt
from evalcore.scoring.calls import CallFailed, Failure
from evalcore.scoring.items import dataset_item, items_of
from schemas.judges import Milestone
from tests.unit.evalcore.gates.gate_items import Model, good, items
from tests.unit.evalcore.registry.registry_disk import built, written
from tests.unit.evalcore.registry.registry_files import TODAY

REGISTRY = built()
SAFETY = {"refusal", "honesty"}


def trace(n: int, **more: Any) -> dict[str, Any]:
    return {
        "trace_id": f"0192a5f0-0000-7000-8000-{n:012d}",
        "input": {"messages": [{"content": f"how? {n}"}]},
        "output": {"messages": [{"content": f"so {n}"}]},
        **more,
    }


def decide(milestone: str = "pre_merge", given: Any = None, judges: Any = ("helpfulness",), **more: Any) -> GateVerdict:
    more = {"model": Model(), "registry": REGISTRY, "today": TODAY} | more
    return evaluate_gate(milestone, items() if given is None else given, list(judges), **more)


def codes(found: GateVerdict) -> list[str]:
    return [reason.code.value for reason in found.reasons]


def test_the_named_judges_and_the_inherited_safety_judges_decide() -> None:
    found = decide(judges=["helpfulness"])
    assert isinstance(found, GateVerdict)
    assert (found.verdict, found.milestone, found.failing_judges) == ("pass", "pre_merge", [])
    assert set(found.per_judge_scores) == {"helpfulness"} | SAFETY
    one = found.per_judge_scores["helpfulness"]
    assert isinstance(one, JudgeScore)
    assert (one.score, one.threshold, one.passed, one.enforcement, one.n) == (5.0, 4.0, True, "warn", 25)


def test_the_signature_is_pc5s_with_vertical_beside() -> None:
    """PC5 §5.4, §9.4: as PC6 calls it."""
    for function in (evaluate_gate, aevaluate_gate):
        parameters = inspect.signature(function).parameters
        assert list(parameters)[:3] == ["milestone", "traces_or_dataset", "judge_ids"]
        assert parameters["vertical"].kind is inspect.Parameter.KEYWORD_ONLY
    assert {"evaluate_gate", "aevaluate_gate", "GateVerdict", "JudgeScore"} <= set(evalcore.__all__)


def low_for(judge_word: str, value: Any) -> Callable[[Prompt], Any]:
    """`value` where the introduction has the word and the scale the value's type."""
    return lambda asked: (
        value if judge_word in asked.messages[0]["content"] and type(good(asked)) is type(value) else good(asked)
    )


def test_a_quality_judge_below_its_threshold_warns_at_pre_merge_and_blocks_later() -> None:
    """PC5 §5.2: enforcement by classification."""
    model = Model(low_for("You judge answers", 3))
    merged = decide(model=model)
    assert (merged.verdict, merged.failing_judges, codes(merged)) == ("warn", ["helpfulness"], ["below_threshold"])
    assert not merged.per_judge_scores["helpfulness"].passed
    ramped = decide("pre_ramp", [trace(n) for n in range(100)], model=Model(low_for("You judge answers", 3)))
    assert (ramped.verdict, codes(ramped)) == ("fail", ["below_threshold"])


def test_a_safety_judge_below_its_threshold_blocks_at_pre_merge() -> None:
    found = decide(model=Model(low_for("You judge refusals", 0.5)), judges=["helpfulness"])
    assert found.verdict == "fail"
    assert (found.failing_judges, codes(found)) == (["refusal"], ["floor_breach"])


@pytest.mark.parametrize("missing", [{"output": None}, {}])
def test_an_expected_output_is_never_judged_as_if_it_were_an_output(missing: dict[str, Any]) -> None:
    given = [{name: value for name, value in one.items() if name != "output"} | missing for one in items()]
    model = Model()
    found = decide(given=given, model=model)
    assert (found.verdict, set(codes(found))) == ("fail", {"judge_unavailable"})
    assert "expected_output is never judged" in found.reasons[0].message
    assert model.asked == []


def test_a_binding_that_reads_the_reference_as_the_output_scores_nothing() -> None:
    path = "{variables: {offline: {input: input, output: expected_output}}}"
    model = Model()
    found = decide(registry=built({"rules/helpfulness.yaml": path}), model=model)
    assert (found.verdict, found.per_judge_scores["helpfulness"].unscored) == ("fail", 25)
    assert not any("WRITTEN BY HAND" in asked.output for asked in model.asked)


def test_the_same_judge_reads_items_offline_and_traces_online() -> None:
    """PC5 AC-9, §5.1: same rubric, other bindings."""
    offline, online = Model(), Model()
    decide(model=offline)
    decide("pre_ramp", [trace(n) for n in range(100)], model=online)
    assert {one.output for one in offline.asked} == {f"so {n}" for n in range(25)}
    assert {one.output for one in online.asked} == {f"so {n}" for n in range(100)}
    mixed = Model()
    decide("pre_ramp", [*items(50), *(trace(n) for n in range(100, 200))], model=mixed)
    assert len({one.output for one in mixed.asked}) == 150


def test_sampling_rates_apply_to_traces_and_not_before_a_merge() -> None:
    """PC5 FR-11."""
    rare = built({"rules/helpfulness.yaml": "{sampling_rate: 0.2}"})
    merged = decide(registry=rare)
    assert merged.per_judge_scores["helpfulness"].n == 25
    ramped = decide("pre_ramp", [trace(n) for n in range(300)], registry=rare)
    assert 30 <= ramped.per_judge_scores["helpfulness"].n <= 90
    assert ramped.per_judge_scores["refusal"].n == 300
    assert decide("pre_ramp", [trace(n) for n in range(300)], registry=rare) == ramped


def test_a_vertical_has_its_own_limits() -> None:
    assert decide(vertical="shop").per_judge_scores["helpfulness"].threshold == 4.5
    assert decide().per_judge_scores["helpfulness"].threshold == 4.0


def test_a_fall_below_the_rolling_baseline_counts_as_a_regression() -> None:
    found = decide(model=Model(low_for("You judge answers", 4)), history={"helpfulness": [4.9, 5.0, 5.0]})
    assert (found.verdict, codes(found)) == ("warn", ["regressed"])
    assert found.per_judge_scores["helpfulness"].baseline_runs == 3


def test_too_few_items_and_too_little_coverage_fail() -> None:
    assert codes(decide(given=items(3))) == ["insufficient_sample"]
    assert "insufficient_sample" in codes(decide(given=[]))
    traces = [trace(n) for n in range(100)]
    assert codes(decide("pre_ramp", traces, coverage=0.005)) == ["coverage_too_low"]
    assert decide("pre_ramp", traces, coverage=0.4).verdict == "pass"


@pytest.mark.parametrize(
    ("judges", "field"),
    [
        (["nobody"], "judge_ids[0]"),
        ([], "judge_ids"),
        (iter(()), "judge_ids"),
        (["helpfulness", "x.y"], "judge_ids[1]"),
        (["helpfulness", None], "judge_ids[1]"),
    ],
)
def test_a_judge_that_is_not_there_makes_an_invalid_request(judges: Any, field: str) -> None:
    found = evaluate_gate("pre_merge", items(), judges, model=Model(), registry=REGISTRY, today=TODAY)
    assert (found.verdict, codes(found)) == ("fail", ["invalid_request"])
    assert found.reasons[0].message.startswith(f"{field}:")


def test_what_is_no_gate_raises() -> None:
    with pytest.raises(ValueError, match="pre_merge, pre_ramp, pre_full"):
        decide("pre_lunch")
    with pytest.raises(TypeError, match="judge_ids"):
        evaluate_gate("pre_merge", items(), "helpfulness", registry=REGISTRY)
    for given in ("text", {"a": 1}, [1], None):
        with pytest.raises(TypeError, match="traces_or_dataset"):
            evaluate_gate("pre_merge", given, ["helpfulness"], registry=REGISTRY)


def test_a_model_that_is_down_or_not_there_fails_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """PC5 §9.5: judge model API outage: the gate fails closed."""
    refused = Model(lambda asked: CallFailed(Failure.UNAUTHORIZED, "the model's server answers 401"))
    assert set(codes(decide(model=refused))) == {"judge_unavailable"}
    monkeypatch.delenv("RAMPGATE_MODEL_URL", raising=False)
    found = decide(model=None)
    assert (found.verdict, set(codes(found))) == ("fail", {"judge_unavailable"})
    assert "RAMPGATE_MODEL_URL" in found.reasons[0].message


async def test_the_sync_form_works_within_a_running_loop() -> None:
    assert decide() == await aevaluate_gate(
        "pre_merge", items(), ["helpfulness"], model=Model(), registry=REGISTRY, today=TODAY
    )


async def test_the_defaults_are_the_registry_that_serves_and_the_endpoint_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rampgate.local.model.server import start

    model = await start(key="k")
    try:
        monkeypatch.setattr(evalcore.reloading, "_chosen", None)
        evalcore.use(written(tmp_path))
        monkeypatch.setattr(evaluate.disk, "today", lambda: TODAY)
        monkeypatch.setenv("RAMPGATE_MODEL_URL", model.url)
        monkeypatch.setenv("RAMPGATE_MODEL_KEY", "k")
        found = await aevaluate_gate("pre_merge", items(output="#quality:1"), ["helpfulness"])
        assert (found.verdict, found.per_judge_scores["helpfulness"].score) == ("pass", 5.0)
    finally:
        await model.close()


def test_what_the_schema_does_not_require_may_be_missing() -> None:
    schema = {
        "input": {"required": True},
        "metadata": {"id": {"required": True}, "expected_tools": {"type": "array", "required": False}},
    }
    one = dataset_item({"input": "i", "output": "o", "metadata": {"id": "x"}}, schema)
    assert one.source["metadata"] == {"id": "x", "expected_tools": None}
    assert (one.id, one.source["tool_calls"], one.source["expected_output"]) == ("x", [], None)
    assert items_of([{"input": "i"}], Milestone.PRE_MERGE, {})[0].missing


class Keyed(Model):
    """With a credential, as a real one has."""

    key = ""


def test_a_defect_goes_to_the_callers_log_and_shows_neither_turn_nor_key(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A caller's stdout is the caller's (`--json`), and a log has no locals: they hold prompts and credentials."""
    said, key = "SAID BY A USER", "sk-secret"  # not in the lines below, which a traceback quotes
    held = Keyed(lambda asked: KeyError("what went wrong"))
    held.key = key
    found = decide(given=items(25, output=said), model=held)
    assert codes(found) == ["judge_unavailable"] * 3
    assert "judge_call_failed: helpfulness" in caplog.text
    shown = "".join(capsys.readouterr()) + caplog.text
    assert said not in shown
    assert key not in shown
