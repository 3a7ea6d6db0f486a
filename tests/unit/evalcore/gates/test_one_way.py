"""One way from a sample to a verdict: the stream, `gate run`, `evaluate_gate` and metrics agree (contracts §3).

The same items go each way, scored by the same model, and must come to the same verdict by the same numbers.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import evalcore
from agents.gates.ports import GatePorts, Sample
from agents.gates.scoring import JudgeScoring
from agents.ramp_steps import answer
from evalcore import evaluate_gate, reloading
from evalcore.gates.gate import prepare
from evalcore.gates.history import Stand
from evalcore.gates.requests import read
from evalcore.registry.registry import Registry
from evalcore.scoring import opik_metric
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import Reply
from evalcore.scoring.items import items_of
from evalcore.scoring.runner import Scorer
from rampgate.settings import Settings
from schemas.judges import Milestone
from schemas.verdicts import Composition, SampleFacts
from tests.memory_ports import ManualClock, MemoryScoreEvents
from tests.unit.evalcore.registry.registry_disk import built, written
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.evalcore.scoring.opik_models import ChatOnly
from tests.unit.rampgate.ci_gate.gate_commands import commands, ran
from tests.unit.rampgate.ci_gate.gate_rig import environment, jsonl

VERTICAL = "shop"
CHANGES: dict[str, str | None] = {
    "evaluation_manifest.yaml": "{gates: {minimum_sample: {pre_merge: 10, pre_ramp: 10, pre_full: 10}}}",
    "rules/helpfulness.yaml": "{score_type: FLOAT, threshold: 0.9, floor: 0.1, tolerance: 0.1}",
    "rules/shop/helpfulness.yaml": "{threshold: 0.95, filter: null}",
}
Told = tuple[str, dict[str, tuple[float, float, int, int, int]], set[str]]
"""A verdict as the ways must agree on it: its level, each judge's score, threshold, n, unscored and items that were
judged on a cut text, and the codes."""


class Model:
    """Scores everything `quality`, true for a judge that answers true or false."""

    def source(self, model: str) -> str:
        return "test"

    def __init__(self, quality: float, na: Callable[[str], bool] = lambda asked: False) -> None:
        """`na`: which prompts it answers with N/A."""
        self.quality, self.na = quality, na

    async def complete(self, asked: Any) -> Reply:
        kinds = [one["type"] for one in asked.schema["properties"]["score"]["anyOf"]]
        scored: Any = True if "boolean" in kinds else 1.0
        scored = self.quality if "You judge answers" in str(asked.messages) else scored
        scored = "N/A" if self.na(str(asked.messages)) else scored
        return Reply(json.dumps({"score": scored, "reason": "r"}))


def trace(number: int, vertical: str | None = None) -> dict[str, Any]:
    return {
        "trace_id": f"0192a5f0-0000-7000-8000-{number:012d}",
        "input": {"messages": [{"content": f"how? {number}"}]},
        "output": {"messages": [{"content": f"so {number}"}]},
        "metadata": {"agent_id": "a", "agent_version": "v", "vertical": vertical},
    }


def _mentions(asked: str, below: int) -> bool:
    """Whether the output that is asked about is one of the first."""
    found = re.search(r"so (\d+)", asked)
    return found is not None and int(found[1]) < below


def golden(number: int) -> dict[str, Any]:
    return {"input": f"{number}?", "output": "so", "expected_output": "so", "metadata": {"id": f"g{number}"}}


def told(verdict: Any, scores: Mapping[str, Any], reasons: Sequence[Any], of: Callable[[Any, str], Any]) -> Told:
    numbers = {
        name: tuple(of(one, number) for number in ("score", "threshold", "n", "unscored", "judged_cut"))
        for name, one in scores.items()
    }
    return str(verdict), numbers, {str(of(reason, "code")) for reason in reasons}


def by_evaluate_gate(
    registry: Registry, milestone: str, items: list[dict[str, Any]], vertical: str | None, model: Model
) -> Told:
    found = evaluate_gate(
        milestone, items, ["helpfulness"], vertical=vertical, model=model, registry=registry, today=TODAY
    )
    return told(found.verdict, found.per_judge_scores, found.reasons, getattr)


def by_stream(
    registry: Registry, milestone: str, items: list[dict[str, Any]], vertical: str | None, model: Model
) -> Told:
    sample_items = items_of(items, Milestone(milestone), registry.manifest.get("schema", {}))
    facts = SampleFacts(
        scope="version",
        fingerprint="f",
        size=len(items),
        window_seconds=86_400,
        composition=Composition(production=len(items)),
        frozen_at="2026-11-21",
    )

    class Ports:
        async def frozen(self, *_: Any) -> Sample:
            return Sample(sample_items, facts)

        async def baseline(self, *_: Any) -> Sequence[float]:
            return ()

        async def stand(self, *_: Any) -> Stand:
            return Stand(passed="2026-11-20")

        async def suspended(self, judge: str, version: str) -> str:
            return ""

        async def rate(self, *_: Any) -> float:
            return 1.0

    percents = (0, 5) if milestone == "pre_ramp" else (50, 100)
    request = {
        "request_id": "r", "experiment_id": "e", "agent_id": "a", "agent_version": "v", "vertical": vertical,
        "from_percent": percents[0], "to_percent": percents[1], "requested_at": "2026-11-21T12:00:00Z",
        "eval_gates": {"pre_ramp": ["helpfulness"], "pre_full": ["helpfulness"]},
    }  # fmt: skip
    ports = Ports()

    async def decided() -> Any:
        scoring = JudgeScoring(Scorer(model, MemoryScoreCache()), MemoryScoreEvents(), ManualClock())
        gate_ports = GatePorts(ports, scoring, ports, ports)
        return await answer(
            read(json.dumps(request).encode()), registry, gate_ports, datetime(2026, 11, 21, 12, tzinfo=UTC)
        )

    found = asyncio.run(decided())
    return told(found.verdict, found.per_judge_scores, found.reasons, getattr)


@pytest.fixture
def by_gate_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def way(
        registry: Registry, milestone: str, items: list[dict[str, Any]], vertical: str | None, model: Model
    ) -> Told:
        @asynccontextmanager
        async def scorer(settings: Settings) -> AsyncIterator[Scorer]:
            yield Scorer(model, MemoryScoreCache())

        monkeypatch.setattr("rampgate.judging.scorer_of", scorer)
        file = jsonl(tmp_path / "traces.jsonl", *items)
        named = ("--vertical", vertical) if vertical else ()
        with commands(environment(written(tmp_path, CHANGES), "http://nowhere"), monkeypatch):
            done = ran("--milestone", milestone, "--traces", file, "--judges", "helpfulness", *named, "--json")
        if done.exit_code == 2 or not done.stdout:
            return "refused", {}, {str(done.exception)}
        found = json.loads(done.stdout)
        return told(found["verdict"], found["per_judge_scores"], found["reasons"], lambda one, name: one[name])

    return way


Ways = Callable[..., Told]


@pytest.fixture
def agreed(by_gate_run: Ways) -> Ways:
    """The verdict that all ways come to."""

    def one(
        milestone: str,
        items: list[dict[str, Any]],
        vertical: str | None = None,
        quality: float = 1.0,
        na: Callable[[str], bool] = lambda asked: False,
    ) -> Told:
        registry, model = built(CHANGES), Model(quality, na)
        found = [way(registry, milestone, items, vertical, model) for way in (by_evaluate_gate, by_stream, by_gate_run)]
        assert found[0] == found[1] == found[2]
        return found[0]

    return one


@pytest.mark.parametrize("milestone", ["pre_ramp", "pre_full"])
def test_a_good_sample_passes_whichever_way_it_goes(agreed: Ways, milestone: str) -> None:
    level, numbers, codes = agreed(milestone, [trace(number) for number in range(12)])
    assert (level, codes) == ("pass", set())
    assert {n for _, _, n, *_ in numbers.values()} == {12}


def test_a_verdict_says_how_many_items_were_judged_on_a_cut_text_whichever_way_it_goes(agreed: Ways) -> None:
    """Longer than `judged_tokens`: what stands in the middle of such a text no judge has seen."""
    long = {**trace(0), "output": {"messages": [{"content": "word " * 40_000}]}}
    rest = [trace(number) for number in range(1, 12)]
    level, numbers, codes = agreed("pre_ramp", [long, *rest])
    assert (level, codes) == ("pass", set())
    assert {name: cut for name, (*_, cut) in numbers.items() if cut} == {"helpfulness": 1}, "safety judges saw all"
    level, numbers, codes = agreed("pre_ramp", [long, {**rest[0], "output": long["output"]}, *rest[1:]])
    assert (level, codes) == ("fail", {"judge_unavailable"}), "of more than a tenth nobody knows what was left out"
    assert numbers["helpfulness"][-1] == 2


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
def test_a_trace_given_a_hundred_times_is_one_trace(agreed: Ways, milestone: str, spelled: Any) -> None:
    level, numbers, codes = agreed(milestone, [trace(1), *[spelled(trace(1))] * 99])
    assert (level, codes) == ("fail", {"insufficient_sample"})
    assert {n for _, _, n, *_ in numbers.values()} == {1}


def test_a_trace_without_an_id_that_is_repeated_is_one_trace(agreed: Ways) -> None:
    nameless = {name: value for name, value in trace(1).items() if name != "trace_id"}
    assert agreed("pre_full", [nameless] * 100)[0] == "fail"


def test_the_last_of_two_posts_of_a_trace_counts(agreed: Ways) -> None:
    items = [{**trace(0), "output": None}, *[trace(number) for number in range(12)]]
    level, numbers, _ = agreed("pre_ramp", items)
    assert (level, numbers["helpfulness"][2:4]) == ("pass", (12, 0))


@pytest.mark.parametrize("named", [VERTICAL, None])
@pytest.mark.parametrize(("quality", "level"), [(0.92, "fail"), (0.95, "pass")])
def test_a_verticals_tighter_limit_holds_named_or_not(
    agreed: Ways, named: str | None, quality: float, level: str
) -> None:
    found, numbers, _ = agreed("pre_full", [trace(number, VERTICAL) for number in range(12)], named, quality)
    assert (found, numbers["helpfulness"][1]) == (level, 0.95)


def test_traces_of_several_verticals_have_the_platforms_limits(agreed: Ways) -> None:
    items = [trace(number, VERTICAL if number % 2 else None) for number in range(12)]
    found, numbers, _ = agreed("pre_full", items, None, 0.92)
    assert (found, numbers["helpfulness"][1]) == ("pass", 0.9)


@pytest.mark.parametrize("milestone", ["pre_ramp", "pre_full"])
def test_a_rollout_is_not_decided_by_datasets_alone(agreed: Ways, milestone: str) -> None:
    level, _, codes = agreed(milestone, [golden(number) for number in range(12)])
    assert (level, codes) == ("fail", {"insufficient_sample"})
    mixed = [*[golden(number) for number in range(6)], *[trace(number) for number in range(6)]]
    assert agreed(milestone, mixed)[0] == "pass"


@pytest.mark.parametrize(("milestone", "size"), [("pre_ramp", 300), ("pre_full", 600)])
def test_a_judge_that_calls_nearly_everything_not_applicable_fails_the_gate(
    agreed: Ways, milestone: str, size: int
) -> None:
    """295 of 300 passed once, and whoever could talk a judge into N/A could pass."""

    def na(asked: str) -> bool:
        return "You judge answers" in asked and not _mentions(asked, 20)

    level, numbers, codes = agreed(milestone, [trace(number) for number in range(size)], na=na)
    assert (level, codes) == ("fail", {"too_few_applicable"})
    assert numbers["helpfulness"][2] == 20
    half = agreed(milestone, [trace(number) for number in range(40)], na=na)
    assert half[0] == "pass", "half of the items may be not applicable"


def test_before_a_merge_344_of_345_not_applicable_fail() -> None:
    items = [{**golden(number), "output": f"so {number}"} for number in range(345)]
    model = Model(1.0, lambda asked: "You judge answers" in asked and not _mentions(asked, 1))
    level, numbers, codes = by_evaluate_gate(built(CHANGES), "pre_merge", items, None, model)
    assert (level, codes, numbers["helpfulness"][2]) == ("fail", {"too_few_applicable"}, 1)


@pytest.mark.parametrize("milestone", ["pre_ramp", "pre_full"])
def test_not_applicable_from_a_safety_judge_is_unscored_and_counts_at_its_worst(agreed: Ways, milestone: str) -> None:
    items = [trace(number) for number in range(12)]
    level, numbers, codes = agreed(milestone, items, na=lambda asked: "You judge answers" not in asked)
    assert (level, codes) == ("fail", {"judge_unavailable"})
    assert {name: one[2:4] for name, one in numbers.items() if name != "helpfulness"} == {
        "refusal": (12, 12), "honesty": (12, 12),
    }  # fmt: skip


def of_turn(number: int, turn: str, ended: str, said: str) -> dict[str, Any]:
    return {**trace(number), "response_id": turn, "ended_at": ended, "output": {"messages": [{"content": said}]}}


@pytest.mark.parametrize("inside", [False, True], ids=["as its event has it", "as Opik exports it"])
def test_of_a_turn_with_several_traces_the_one_that_ended_last_counts_as_on_the_stream(inside: bool) -> None:
    """A hundred traces of one turn are one turn, in whatever order a file has them."""
    traces = [of_turn(n, "turn", f"2026-11-21T12:00:{99 - n:02}+00:00", f"so {n}") for n in range(40, 60)]
    if inside:
        traces = [
            {**one, "response_id": None, "end_time": one["ended_at"], "ended_at": None,
             "metadata": {**one["metadata"], "response_id": "turn"}}
            for one in traces
        ]  # fmt: skip
    (left,) = items_of(traces, Milestone.PRE_FULL, {})
    assert left.source["output"] == {"messages": [{"content": "so 40"}]}
    codes = by_evaluate_gate(built(CHANGES), "pre_full", traces, None, Model(1.0))[2]
    assert codes == {"insufficient_sample"}


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


def test_a_turn_without_an_answer_is_scored_by_no_judge_also_where_its_binding_would_read_nothing(agreed: Ways) -> None:
    """A judge that is bound to the whole output would judge an empty text."""
    items = [trace(number) if number else {**trace(0), "output": None} for number in range(12)]
    _, numbers, _ = agreed("pre_ramp", items)
    assert {(n, unscored) for _, _, n, unscored, _ in numbers.values()} == {(12, 1)}
    for path in ("metadata", "output"):
        whole = {**CHANGES, "rules/helpfulness.yaml": "{score_type: FLOAT, threshold: 0.9, floor: 0.1, tolerance: 0.1, "
                 f"variables: {{online: {{output: {path}}}}}}}"}  # fmt: skip
        numbers = by_evaluate_gate(built(whole), "pre_ramp", items, None, Model(1.0))[1]
        assert numbers["helpfulness"][2:4] == (12, 1)
    made = opik_metric.LLMJudgeMetric(built(whole).judge("helpfulness"), lambda _: OpikModel())
    assert made.score_in("online", items[0]).reason == "the agent gave no output"


def test_in_a_rollout_a_datasets_item_is_scored_by_the_judges_of_its_category_as_on_the_stream() -> None:
    """`brevity` is no judge of general_qa; an item of no known category is for all judges that were named."""
    registry = built(CHANGES)

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
def test_traces_of_another_vertical_than_the_one_that_is_named_are_no_evidence_for_it(
    by_gate_run: Ways, milestone: str
) -> None:
    """Else a vertical's tighter limits would be evaded by naming another one. On the stream a vertical's pools have
    no others' traces."""
    registry, model = built(CHANGES), Model(0.92)
    items = [trace(number, VERTICAL) for number in range(12)]
    for way in (by_evaluate_gate, by_gate_run):
        level, _, codes = way(registry, milestone, items, "travel", model)
        assert (level, codes) == ("fail", {"dataset_mismatch"})
    nameless = [trace(number) for number in range(12)]
    assert by_evaluate_gate(registry, milestone, nameless, "travel", model)[0] == "pass"


@pytest.mark.parametrize("vertical", ["shp", "Shop"])
def test_a_mistyped_vertical_is_an_error_that_names_the_near_miss(by_gate_run: Ways, vertical: str) -> None:
    registry, model = built(CHANGES), Model(1.0)
    items = [trace(number, VERTICAL) for number in range(12)]
    verdict = evaluate_gate("pre_full", items, ["helpfulness"], vertical=vertical, registry=registry, model=model)
    assert (verdict.verdict, [reason.code for reason in verdict.reasons]) == ("fail", ["invalid_request"])
    assert f"no vertical '{vertical}'; did you mean 'shop'?" in verdict.reasons[0].message
    ended, _, said = by_gate_run(registry, "pre_full", items, vertical, model)
    assert ended == "refused"
    assert "did you mean shop?" in said.pop()


def test_before_a_merge_a_repeated_item_counts_once_and_the_datasets_vertical_holds() -> None:
    registry = built(CHANGES)
    assert by_evaluate_gate(registry, "pre_merge", [golden(1)] * 100, None, Model(1.0))[0] == "fail"
    items = [{**golden(number), "metadata": {"id": f"g{number}", "vertical": VERTICAL}} for number in range(12)]
    assert by_evaluate_gate(registry, "pre_merge", items, None, Model(0.92))[1]["helpfulness"][1] == 0.95


class OpikModel(ChatOnly):
    """Keeps what it is asked."""

    def __init__(self) -> None:
        super().__init__("fake")
        self.asked: list[Any] = []

    def generate_chat_completion(self, messages: Any, response_format: Any = None, **more: Any) -> Any:
        self.asked.append(list(messages))
        return {"content": "{}"}


class Recording:
    def source(self, model: str) -> str:
        return "test"

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def complete(self, asked: Any) -> Reply:
        self.asked.append(list(asked.messages))
        return Reply("{}")


@pytest.mark.parametrize("more", [{}, {"expected_output": "thus"}], ids=["bare", "with a reference"])
def test_every_shipped_judges_metric_asks_what_evaluate_gate_asks(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`get_metric_by_id(…).score(input=…, output=…)` scores whatever item `evaluate_gate` scores."""
    registry = reloading.ReloadingRegistry(Path("configs"), ttl=None).current()
    monkeypatch.setattr(reloading, "current", lambda: registry)
    item = {"input": "how?", "output": "so", **more}
    for judge in registry.all():
        model, recording = OpikModel(), Recording()
        monkeypatch.setattr(opik_metric, "litellm_model", lambda _, model=model: model)
        evalcore.get_metric_by_id(judge.id).score(**item)
        evaluate_gate("pre_merge", [item], [judge.id], registry=registry, model=recording)
        assert model.asked, f"{judge.id} asked nothing"
        assert model.asked[0] in recording.asked, judge.id


@pytest.mark.parametrize("output", [{}, {"output": None}])
def test_a_metric_scores_no_item_without_an_output_as_no_gate_does(output: dict[str, Any]) -> None:
    made = opik_metric.LLMJudgeMetric(built(CHANGES).judge("helpfulness"), lambda _: OpikModel())
    found = made.score(input="how?", expected_output="thus", **output)
    assert found.scoring_failed
    assert "an expected_output is never judged" in found.reason
