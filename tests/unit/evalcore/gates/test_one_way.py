"""One way from a sample to a verdict: the stream, `gate run`, `evaluate_gate` and metrics agree (contracts §3).

The same items go each way, scored by the same model, and must come to the same verdict by the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import evalcore
from evalcore import evaluate_gate, reloading
from evalcore.gates.gate import prepare
from evalcore.judges.kinds import needs_model
from evalcore.registry.registry import Registry
from evalcore.scoring import opik_metric
from evalcore.scoring.items import items_of
from schemas.judges import Milestone
from tests.unit.evalcore.gates import ways_rig
from tests.unit.evalcore.gates.gate_items import Model
from tests.unit.evalcore.gates.ways_rig import START, Drawn, Verdict, by_gate_run, by_stream
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.scoring.opik_models import ChatOnly

VERTICAL = "shop"
GOOD, NEAR, BESIDE, UNSAFE = "mk0000", "mk1000", "mk3000", "mk0033"
"""Marks of answers (`ways_rig.SCORES`): by helpfulness 1.0, 0.93, not applicable; not applicable by safety judges."""
Way = Callable[[Drawn, Registry], Verdict]


def trace(number: int, vertical: str | None = None, mark: str = GOOD) -> dict[str, Any]:
    return {
        "trace_id": f"0192a5f0-0000-7000-8000-{number:012d}",
        "input": {"messages": [{"content": f"how? {number}"}]},
        "output": {"messages": [{"content": f"so {number} {mark}"}]},
        "ended_at": datetime.fromtimestamp(START, UTC).isoformat(),
        "metadata": {"agent_id": "a", "agent_version": "v", "vertical": vertical},
    }


def golden(number: int, mark: str = GOOD, **metadata: Any) -> dict[str, Any]:
    metadata = {"id": f"g{number}", "category": "general_qa", **metadata}
    return {"input": f"{number}?", "output": f"so {number} {mark}", "expected_output": "so", "metadata": metadata}


def drawn(milestone: str, rows: Sequence[dict[str, Any]], vertical: str | None = None) -> Drawn:
    of_dataset = tuple(one for one in rows if "expected_output" in one)
    traces = tuple(one for one in rows if one not in of_dataset)
    return Drawn(Milestone(milestone), vertical, ("helpfulness",), traces, of_dataset)


def by_evaluate_gate(milestone: str, rows: Sequence[dict[str, Any]], vertical: str | None = None) -> Verdict:
    return by(ways_rig.by_evaluate_gate, milestone, rows, vertical)


def by(way: Way, milestone: str, rows: Sequence[dict[str, Any]], vertical: str | None = None) -> Verdict:
    one = drawn(milestone, rows, vertical)
    return way(one, built(one.changes))


WAYS = by_stream, by_gate_run


def agreed(
    milestone: str, rows: Sequence[dict[str, Any]], vertical: str | None = None, ways: Sequence[Way] = WAYS
) -> Verdict:
    """The verdict of `evaluate_gate`, to which these ways come too."""
    found = by_evaluate_gate(milestone, rows, vertical)
    for way in ways:
        assert by(way, milestone, rows, vertical) == found, way
    return found


@pytest.mark.parametrize("milestone", ["pre_ramp", "pre_full"])
def test_a_good_sample_passes_whichever_way_it_goes(milestone: str) -> None:
    level, numbers, codes = agreed(milestone, [trace(number) for number in range(12)])
    assert (level, codes) == ("pass", set())
    assert {n for _, _, n, *_ in numbers.values()} == {12}


def test_a_verdict_says_how_many_items_were_judged_on_a_cut_text_whichever_way_it_goes() -> None:
    """Longer than `judged_tokens`: what stands in the middle of such a text no judge has seen."""
    long = trace(0, mark=f"{GOOD} word " * 20_000)
    rest = [trace(number) for number in range(1, 12)]
    level, numbers, codes = agreed("pre_ramp", [long, *rest])
    assert (level, codes) == ("pass", set())
    assert {name: one[4] for name, one in numbers.items() if one[4]} == {"helpfulness": 1}, "safety judges saw all"
    level, numbers, codes = agreed("pre_ramp", [long, {**rest[0], "output": long["output"]}, *rest[1:]])
    assert (level, codes) == ("fail", {"judge_unavailable"}), "of more than a tenth no one knows what was left out"
    assert numbers["helpfulness"][4] == 2


@pytest.mark.parametrize("milestone", ["pre_ramp", "pre_full"])
@pytest.mark.parametrize(
    "spelled",
    [
        lambda one: one,
        lambda one: {**one, "trace_id": one["trace_id"].upper()},
        lambda one: {**{name: value for name, value in one.items() if name != "trace_id"}, "id": one["trace_id"]},
    ],
    ids=["as it is", "in capitals", "as Opik exports it"],
)
def test_a_trace_given_a_hundred_times_is_one_trace(milestone: str, spelled: Any) -> None:
    """On the stream an event has its trace's id, as the SDK writes it."""
    same, ways = [trace(1), *[spelled(trace(1))] * 99], WAYS if spelled(trace(1)) == trace(1) else (by_gate_run,)
    level, numbers, codes = agreed(milestone, same, ways=ways)
    assert (level, codes) == ("fail", {"insufficient_sample"})
    assert {n for _, _, n, *_ in numbers.values()} == {1}


def test_a_trace_without_an_id_that_is_repeated_is_one_trace() -> None:
    nameless = {name: value for name, value in trace(1).items() if name != "trace_id"}
    assert agreed("pre_full", [nameless] * 100, ways=(by_gate_run,))[0] == "fail"


def test_an_item_that_its_dataset_has_thirty_times_is_one_item_whichever_way_it_goes() -> None:
    _, numbers, _ = agreed("pre_ramp", [*[trace(number) for number in range(12)], *[golden(1)] * 30])
    assert numbers["helpfulness"][2] == 13


def test_the_last_of_two_posts_of_a_trace_counts() -> None:
    items = [{**trace(0), "output": None}, *[trace(number) for number in range(12)]]
    level, numbers, _ = agreed("pre_ramp", items)
    assert (level, numbers["helpfulness"][2:4]) == ("pass", (12, 0))


@pytest.mark.parametrize("named", [VERTICAL, None])
@pytest.mark.parametrize(("mark", "level"), [(NEAR, "fail"), (GOOD, "pass")])
def test_a_verticals_tighter_limit_holds_named_or_not(named: str | None, mark: str, level: str) -> None:
    found, numbers, _ = agreed("pre_full", [trace(number, VERTICAL, mark) for number in range(12)], named)
    assert (found, numbers["helpfulness"][1]) == (level, 0.95)


def test_traces_of_several_verticals_have_the_platforms_limits() -> None:
    items = [trace(number, VERTICAL if number % 2 else None, NEAR) for number in range(12)]
    found, numbers, _ = agreed("pre_full", items)
    assert (found, numbers["helpfulness"][1]) == ("pass", 0.9)


@pytest.mark.parametrize("milestone", ["pre_ramp", "pre_full"])
def test_a_rollout_is_not_decided_by_datasets_alone(milestone: str) -> None:
    level, _, codes = agreed(milestone, [golden(number) for number in range(12)])
    assert (level, codes) == ("fail", {"insufficient_sample"})
    mixed = [*[golden(number) for number in range(6)], *[trace(number) for number in range(6)]]
    assert agreed(milestone, mixed)[0] == "pass"


@pytest.mark.parametrize("milestone", ["pre_ramp", "pre_full"])
def test_a_judge_that_calls_nearly_everything_not_applicable_fails_the_gate(milestone: str) -> None:
    """295 of 300 passed once, and whoever could talk a judge into N/A could pass."""
    items = [trace(number, mark=GOOD if number < 20 else BESIDE) for number in range(100)]
    level, numbers, codes = agreed(milestone, items)
    assert (level, codes) == ("fail", {"too_few_applicable"})
    assert numbers["helpfulness"][2] == 20
    assert agreed(milestone, items[:40])[0] == "pass", "half of the items may be not applicable"


def test_before_a_merge_344_of_345_not_applicable_fail() -> None:
    items = [golden(number, BESIDE if number else GOOD) for number in range(345)]
    level, numbers, codes = by_evaluate_gate("pre_merge", items)
    assert (level, codes, numbers["helpfulness"][2]) == ("fail", {"too_few_applicable"}, 1)


@pytest.mark.parametrize("milestone", ["pre_ramp", "pre_full"])
def test_not_applicable_from_a_safety_judge_is_unscored_and_counts_at_its_worst(milestone: str) -> None:
    level, numbers, codes = agreed(milestone, [trace(number, mark=UNSAFE) for number in range(12)])
    assert (level, codes) == ("fail", {"judge_unavailable"})
    assert {name: one[2:4] for name, one in numbers.items() if name != "helpfulness"} == {
        "refusal": (12, 12), "honesty": (12, 12),
    }  # fmt: skip


def of_turn(number: int, turn: str, ended: str, said: str) -> dict[str, Any]:
    return {**trace(number), "response_id": turn, "ended_at": ended, "output": {"messages": [{"content": said}]}}


@pytest.mark.parametrize("inside", [False, True], ids=["as its event has it", "as Opik exports it"])
def test_of_a_turn_with_several_traces_the_one_that_ended_last_counts_as_on_the_stream(inside: bool) -> None:
    """A hundred traces of one turn are one turn, in whatever order a file has them."""
    traces = [of_turn(n, "turn", f"2026-11-21T12:00:{99 - n:02}+00:00", f"so {n} {GOOD}") for n in range(40, 60)]
    if inside:
        traces = [
            {**one, "response_id": None, "end_time": one["ended_at"], "ended_at": None,
             "metadata": {**one["metadata"], "response_id": "turn"}}
            for one in traces
        ]  # fmt: skip
    (left,) = items_of(traces, Milestone.PRE_FULL, {})
    assert left.source["output"] == {"messages": [{"content": f"so 40 {GOOD}"}]}
    assert by_evaluate_gate("pre_full", traces)[2] == {"insufficient_sample"}


def test_of_a_turns_traces_that_ended_together_the_one_that_was_posted_last_counts_as_on_the_stream() -> None:
    """Also where it had been posted once before the other one."""
    ended = "2026-11-21T12:00:01+00:00"
    first, other, again = (
        of_turn(1, "turn", ended, "so"),
        of_turn(2, "turn", ended, "or"),
        of_turn(1, "turn", ended, "so"),
    )
    (left,) = items_of([first, other, again], Milestone.PRE_FULL, {})
    assert left.source is again
    (left,) = items_of([first, again, other], Milestone.PRE_FULL, {})
    assert left.source is other


def test_a_turn_without_an_answer_is_scored_by_no_judge_also_where_its_binding_would_read_nothing() -> None:
    """A judge that is bound to the whole output would judge an empty text."""
    items = [trace(number) if number else {**trace(0), "output": None} for number in range(12)]
    _, numbers, _ = agreed("pre_ramp", items)
    assert {one[2:4] for one in numbers.values()} == {(12, 1)}
    changes = drawn("pre_ramp", items).changes
    for path in ("metadata", "output"):
        bound = f"{str(changes['rules/helpfulness.yaml'])[:-1]}, variables: {{online: {{output: {path}}}}}}}"
        whole = built({**changes, "rules/helpfulness.yaml": bound})
        noted = [{**one, "metadata": {**one["metadata"], "note": GOOD}} for one in items]
        numbers = ways_rig.by_evaluate_gate(drawn("pre_ramp", noted), whole)[1]
        assert numbers["helpfulness"][2:4] == (12, 1)
    made = opik_metric.LLMJudgeMetric(whole.judge("helpfulness"), lambda _: OpikModel())
    assert made.score_in("online", items[0]).reason == "the agent gave no output"


def test_in_a_rollout_a_datasets_item_is_scored_by_the_judges_of_its_category_as_on_the_stream() -> None:
    """`brevity` is no judge of general_qa; an item of no known category is for all judges that were named."""
    registry = built()

    def scored(category: str | None, **more: Any) -> set[str]:
        metadata = {"id": "g", **more, **({"category": category} if category else {})}
        one = {"input": "?", "output": "so", "expected_output": "so", "metadata": metadata}
        items = items_of([one], Milestone.PRE_RAMP, {})
        gate = prepare(Milestone.PRE_RAMP, items, ["helpfulness", "brevity"], registry, None)
        return {judge.id for judge, _ in gate.assignments}

    assert scored("general_qa") == {"helpfulness"}
    assert scored("shop_returns") == scored(None) == scored("nowhere") == {"helpfulness", "brevity"}
    assert scored("shop_returns", applicable_metrics=["brevity"]) == {"brevity"}


@pytest.mark.parametrize("milestone", ["pre_ramp", "pre_full"])
def test_traces_of_another_vertical_than_the_one_that_is_named_are_no_evidence_for_it(milestone: str) -> None:
    """Else a vertical's tighter limits would be evaded by naming another one. On the stream a vertical's pools have
    no others' traces."""
    items = [trace(number, VERTICAL, NEAR) for number in range(12)]
    level, _, codes = agreed(milestone, items, "travel", (by_gate_run,))
    assert (level, codes) == ("fail", {"dataset_mismatch"})
    nameless = [trace(number, mark=NEAR) for number in range(12)]
    assert by_evaluate_gate(milestone, nameless, "travel")[0] == "pass"


@pytest.mark.parametrize("vertical", ["shp", "Shop"])
def test_a_mistyped_vertical_is_an_error_that_names_the_near_miss(vertical: str) -> None:
    one = drawn("pre_full", [trace(number, VERTICAL) for number in range(12)], vertical)
    verdict = ways_rig.evaluated(one, built(one.changes))
    assert (verdict.verdict, [reason.code for reason in verdict.reasons]) == ("fail", ["invalid_request"])
    assert f"no vertical '{vertical}'; did you mean 'shop'?" in verdict.reasons[0].message
    with pytest.raises(AssertionError, match=r"did you mean shop\?"):
        by_gate_run(one, built(one.changes))


def test_before_a_merge_a_repeated_item_counts_once_and_the_datasets_vertical_holds() -> None:
    assert by_evaluate_gate("pre_merge", [golden(1)] * 100)[0] == "fail"
    items = [golden(number, NEAR, vertical=VERTICAL) for number in range(12)]
    assert by_evaluate_gate("pre_merge", items)[1]["helpfulness"][1] == 0.95


class OpikModel(ChatOnly):
    """Keeps what it is asked."""

    def __init__(self) -> None:
        super().__init__("fake")
        self.asked: list[Any] = []

    def generate_chat_completion(self, messages: Any, response_format: Any = None, **more: Any) -> Any:
        self.asked.append(list(messages))
        return {"content": "{}"}


@pytest.mark.parametrize("more", [{}, {"expected_output": "thus"}], ids=["bare", "with a reference"])
def test_every_shipped_judges_metric_asks_what_evaluate_gate_asks(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`get_metric_by_id(…).score(input=…, output=…)` scores whatever item `evaluate_gate` scores."""
    registry = reloading.ReloadingRegistry(Path("configs"), ttl=None).current()
    monkeypatch.setattr(reloading, "current", lambda: registry)
    item = {"input": "how?", "output": "so", **more}
    for judge in filter(needs_model, registry.all()):
        model, recording = OpikModel(), Model()
        monkeypatch.setattr(opik_metric, "litellm_model", lambda _, model=model: model)
        evalcore.get_metric_by_id(judge.id).score(**item)
        evaluate_gate("pre_merge", [item], [judge.id], registry=registry, model=recording)
        assert model.asked, f"{judge.id} asked nothing"
        assert model.asked[0] in [list(one.messages) for one in recording.asked], judge.id


@pytest.mark.parametrize("output", [{}, {"output": None}])
def test_a_metric_scores_no_item_without_an_output_as_no_gate_does(output: dict[str, Any]) -> None:
    made = opik_metric.LLMJudgeMetric(built().judge("helpfulness"), lambda _: OpikModel())
    found = made.score(input="how?", expected_output="thus", **output)
    assert found.scoring_failed
    assert "an expected_output is never judged" in found.reason
