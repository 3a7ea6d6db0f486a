"""One item, one verdict, whichever way it goes (contracts §3, "One way"): items, verticals, duplicates, what is not
applicable or not scored, and milestones are drawn at random, and the stream, `gate run`, `evaluate_gate` and the
judges' metrics agree on every one.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opik.evaluation.models import OpikBaseModel

from agents.gates.ports import GatePorts
from agents.gates.scoring import JudgeScoring
from agents.join.counting import HOUR
from agents.keys import pool_key
from agents.ports import Change, Pool
from agents.ramp_steps import answer
from evalcore import evaluate_gate
from evalcore.gates.gate import prepare
from evalcore.gates.golden import CandidateAnswer, Failed
from evalcore.gates.requests import named
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Answer, NotApplicable, Scored, Unscored
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import Reply
from evalcore.scoring.items import items_of, served
from evalcore.scoring.opik_metric import LLMJudgeMetric
from evalcore.scoring.runner import Scorer
from evalcore.scoring.sampling import PooledTrace
from rampgate.cli.jobs import gate_run
from schemas.judges import Milestone
from schemas.manifests import CandidateEndpoint
from schemas.ramp_steps import RampStep
from tests.memory_ports import ManualClock, MemoryScoreEvents
from tests.unit.evalcore.registry.registry_disk import built, written
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.rampgate.ci_gate.gate_commands import commands, ran
from tests.unit.rampgate.ci_gate.gate_rig import environment, jsonl
from tests.unit.streams.gates.sample_world import WEEK, Told, World, asked

MERGE, RAMP, FULL = Milestone
VERTICALS = (None, "shop", "travel", "nowhere")
CATEGORIES = {None: "general_qa", "shop": "shop_returns"}
"""The category that the golden set of the platform, or of the vertical that has one, must have items of."""
JUDGES = ("helpfulness", "brevity", "refusal", "honesty")
MARK = re.compile(r"mk(\d{4})")
SCORES: Mapping[str, tuple[object, ...]] = {
    "number": (1.0, 0.93, 0.5, "N/A", "?"),
    "integer": (5, 4, 2, "N/A", "?"),
    "boolean": (True, True, False, "N/A", "?"),
}
"""By the kind of score that is asked for: what a digit of the mark stands for; "?" is no score."""
Verdict = tuple[str, dict[str, tuple[Any, ...]], set[str]]
"""A verdict as the ways have to agree on it: its level, each judge's numbers, and the codes of its reasons."""


@dataclass(frozen=True)
class Drawn:
    """What goes each way. Traces and golden items hold the agent's outputs; an item without one was not answered."""

    milestone: Milestone
    vertical: str | None
    judges: tuple[str, ...]
    traces: tuple[dict[str, Any], ...]
    golden: tuple[dict[str, Any], ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [*self.traces, *self.golden]

    @property
    def changes(self) -> dict[str, str | None]:
        """The registry: with a candidate where a dataset takes part, and datasets of the drawn size."""
        size = len(self.golden)
        manifest: dict[str, Any] = {
            "dataset": {"items": size},
            "datasets": {"shop": {"name": "shop-eval", "version": 1, "items": size}},
            "gates": {"minimum_sample": {"pre_merge": 3, "pre_ramp": 3, "pre_full": 4}},
            "sample": {"size": {"pre_ramp": 600, "pre_full": 600}},
        }
        if size:
            manifest["sample"]["candidate"] = {"url": "http://agents"}
        return {
            "evaluation_manifest.yaml": json.dumps(manifest),
            "rules/helpfulness.yaml": "{score_type: FLOAT, threshold: 0.9, floor: 0.1, tolerance: 0.1}",
            "rules/brevity.yaml": "{sampling_rate: 0.5, filter: {field: sub_agent, operator: '!=', value: finder}}",
            "rules/shop/helpfulness.yaml": "{threshold: 0.95, filter: null}",
        }


def reply(messages: Any, kind: str) -> str:
    """What the judges' model says of the marked text: one digit for each kind of score, one for the safety judge's."""
    text = str(messages)
    digits = MARK.search(text)
    if digits is None:
        return "no text to judge"
    place = 3 if "You judge refusals" in text else ("number", "integer", "boolean").index(kind)
    found = SCORES[kind][int(digits[1][place])]
    return "no score" if found == "?" else json.dumps({"score": found, "reason": "r"})


class GateModel:
    source = "test"

    async def complete(self, asked: Any) -> Reply:
        return Reply(reply(asked.messages, asked.schema["properties"]["score"]["anyOf"][0]["type"]))


class MetricModel(OpikBaseModel):  # type: ignore[misc]  # opik's types are not complete
    def generate_string(self, *_: Any, **__: Any) -> str:
        raise AssertionError("not this way")

    def generate_provider_response(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("not this way")

    def generate_chat_completion(self, messages: Any, response_format: Any = None, **more: Any) -> Any:
        kind = response_format.model_json_schema()["properties"]["score"]["anyOf"][0]["type"]
        return {"content": reply(messages, kind)}


def told(level: Any, scores: Mapping[str, Any], reasons: Sequence[Any], of: Any = getattr) -> Verdict:
    numbers = ("score", "threshold", "n", "unscored", "not_applicable", "passed")
    by_judge = {name: tuple(of(one, number) for number in numbers) for name, one in scores.items()}
    return str(level), by_judge, {str(of(reason, "code")) for reason in reasons}


def by_evaluate_gate(drawn: Drawn, registry: Registry) -> Verdict:
    found = evaluate_gate(
        drawn.milestone, drawn.rows, drawn.judges, vertical=drawn.vertical, model=GateModel(), registry=registry,
        today=TODAY,
    )  # fmt: skip
    return told(found.verdict, found.per_judge_scores, found.reasons)


def by_metrics(drawn: Drawn, registry: Registry) -> Verdict:
    """Each item is scored alone, by a metric as `get_metric_by_id` makes it; the answers decide as any others do."""
    schema = registry.manifest["schema"]
    names, _ = named(drawn.judges, "judges", registry, drawn.vertical)
    gate = prepare(drawn.milestone, items_of(drawn.rows, drawn.milestone, schema), names, registry, drawn.vertical)
    answers: dict[str, list[Answer]] = {}
    for judge, item in gate.assignments:
        metric = LLMJudgeMetric(judge, lambda _: MetricModel("fake"), schema)
        fields = dict(item.source)
        found = metric.score(**fields) if item.context == "offline" else metric.score_in("online", fields)
        kinds = {None: Scored(found.value), "unscored": Unscored(""), "not_applicable": NotApplicable()}
        answers.setdefault(judge.id, []).append(kinds[(found.metadata or {}).get("outcome")])
    made = gate.verdict(answers, TODAY)
    return told(made.verdict, made.per_judge_scores, made.reasons)


class DrawnWorld(World):
    """The topic of traces, its pools, Opik's datasets and the candidate, as the drawn items have them."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__()
        self.drawn = drawn
        asked_of = [{name: one[name] for name in ("input", "expected_output", "metadata")} for one in drawn.golden]
        self.datasets = {"golden": asked_of, "shop-eval": asked_of}

    async def publish(self) -> None:
        now = self.clock.now_ms()
        for place, one in enumerate(self.drawn.traces):
            self.topic.append(one)
            ended = int(datetime.fromisoformat(one["ended_at"]).timestamp() * 1000)
            pooled = PooledTrace(UUID(one["trace_id"]).bytes, ended, 0, place)
            named = one["metadata"]["vertical"]
            for vertical in {named, None}:
                key = pool_key(vertical, "a", "v", ended // HOUR)
                change = Change(pools={key: Pool(now + WEEK, 600, {pooled.pack(): pooled.number})})
                await self.store.apply(change)

    async def to(
        self, items: Sequence[Mapping[str, Any]], endpoint: CandidateEndpoint, step: RampStep
    ) -> list[CandidateAnswer]:
        outputs = [one["output"] for one in self.drawn.golden]
        assert len(outputs) == len(items), "nothing but the dataset is asked"
        return [Failed("down") if said is None else {"output": said} for said in outputs]


def by_stream(drawn: Drawn, registry: Registry) -> Verdict:
    percents = (0, 5) if drawn.milestone is RAMP else (50, 100)
    request = asked(
        agent_id="a", agent_version="v", vertical=drawn.vertical, from_percent=percents[0], to_percent=percents[1],
        deadline_seconds=None, eval_gates={"pre_ramp": list(drawn.judges), "pre_full": list(drawn.judges)},
    )  # fmt: skip
    world, beside = DrawnWorld(drawn), Told()

    async def decided() -> Any:
        await world.publish()
        scoring = JudgeScoring(Scorer(GateModel(), MemoryScoreCache()), MemoryScoreEvents(), ManualClock())
        ports: Any = GatePorts(world.samples, scoring, beside, beside)  # type: ignore[arg-type]  # the part that is asked
        return await answer(request, registry, ports, datetime(2026, 11, 21, 12, tzinfo=UTC))

    found = asyncio.run(decided())
    return told(found.verdict, found.per_judge_scores, found.reasons)


@contextmanager
def command(drawn: Drawn) -> Iterator[Path]:
    """A folder with the registry, and `gate run` with the judges' model of this test."""

    @asynccontextmanager
    async def scorer(**_: Any) -> AsyncIterator[Scorer]:
        yield Scorer(GateModel(), MemoryScoreCache())

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate_run, "scorer_for", scorer)
        with commands(environment(written(Path(folder), drawn.changes), "http://nowhere"), patch):
            yield Path(folder)


def by_gate_run(drawn: Drawn) -> Verdict:
    with command(drawn) as folder:
        arguments: list[object] = ["--milestone", drawn.milestone, "--json"]
        arguments += ["--vertical", drawn.vertical] if drawn.vertical is not None else []
        if drawn.milestone is MERGE:
            answers = ({"id": one["metadata"]["id"], "output": one["output"]} for one in drawn.golden)
            lines = (one if one["output"] is not None else {"id": one["id"], "error": "down"} for one in answers)
            asked_of = ({name: one[name] for name in one if name != "output"} for one in drawn.golden)
            arguments += ["--dataset", jsonl(folder / "golden.jsonl", *asked_of)]
            arguments += ["--outputs", jsonl(folder / "outputs.jsonl", *lines)]
        else:
            arguments += ["--judges", ",".join(drawn.judges)]
            arguments += ["--traces", jsonl(folder / "traces.jsonl", *drawn.rows)]
        done = ran(*arguments)
    assert done.stdout, done.exception
    found = json.loads(done.stdout)
    return told(found["verdict"], found["per_judge_scores"], found["reasons"], lambda one, name: one[name])


def marked(*digits: str) -> st.SearchStrategy[str | None]:
    return st.tuples(*map(st.sampled_from, digits)).map(lambda mark: f"so mk{''.join(mark)}")


good, near = marked("0", "0", "0", "0"), marked("01", "0123", "0", "0")
SAMPLES = (good, near, near, near | marked("0014", "0", "0", "0"), st.none() | marked(*["0001234"] * 4))
"""Strategies for what an agent answers: of a sample that is good, of one that is nearly so, of any."""
ids = st.integers(0, 11)
START = 2_000 * WEEK // 1000 - 3_600


@st.composite
def traces(
    draw: st.DrawFn, verticals: st.SearchStrategy[str | None], outputs: st.SearchStrategy[str | None]
) -> dict[str, Any]:
    number, said = draw(ids), draw(outputs)
    turn = draw(st.none() | st.sampled_from(["t1", "t2"]))
    ended = datetime.fromtimestamp(START + draw(st.integers(0, 3)), UTC)
    return {
        "trace_id": f"0192a5f0-0000-7000-8000-{number:012d}",
        "input": {"messages": [{"content": f"how? {number}"}]},
        "output": None if said is None else {"messages": [{"content": said}]},
        "ended_at": ended.isoformat(),
        "metadata": {
            "agent_id": "a", "agent_version": "v", "vertical": draw(verticals),
            "sub_agent": draw(st.sampled_from(["chat", "finder"])),
        },
        **({"response_id": turn} if turn else {}),
    }  # fmt: skip


@st.composite
def golden(
    draw: st.DrawFn, category: str, number: int, vertical: str | None, outputs: st.SearchStrategy[str | None]
) -> dict[str, Any]:
    metadata = {"id": f"g{number}", "category": category}
    return {
        "input": f"what? {number}",
        "output": draw(outputs),
        "expected_output": "WRITTEN BY HAND mk2222",
        "metadata": {**metadata, **({"vertical": vertical} if vertical else {})},
    }


def owner(vertical: str | None) -> str | None:
    return "shop" if vertical == "shop" else None


@st.composite
def rollouts(draw: st.DrawFn) -> Drawn:
    """A request that names a vertical is about that vertical's traces: the stream has none of others for it."""
    outputs = draw(st.sampled_from(SAMPLES))
    vertical = draw(st.sampled_from((None, None, "shop", "travel")))
    one = draw(st.sampled_from(VERTICALS))
    mixed = st.sampled_from(VERTICALS) if draw(st.booleans()) else st.just(one)
    traced = draw(st.lists(traces(st.just(vertical) if vertical else mixed, outputs), max_size=14))
    limits_of = vertical or served(items_of(traced, RAMP, {}), ("shop", "travel"))
    numbers = draw(st.lists(st.integers(0, 5), max_size=5))
    must = CATEGORIES[owner(limits_of)]
    asked_of = [
        draw(
            golden(must if place == 0 else draw(st.sampled_from(("general_qa", "shop_returns"))), number, None, outputs)
        )
        for place, number in enumerate(numbers)
    ]
    # A dataset's item that is there twice is one item; where the two differ in category, the last one holds.
    kept = {row["metadata"]["id"]: row for row in asked_of}
    if asked_of and must not in {row["metadata"]["category"] for row in kept.values()}:
        asked_of.append(draw(golden(must, 6, None, outputs)))
    milestone = draw(st.sampled_from((RAMP, FULL)))
    judges = draw(st.lists(st.sampled_from(JUDGES), min_size=1, max_size=3, unique=True))
    return Drawn(milestone, vertical, tuple(judges), tuple(traced), tuple(asked_of))


@st.composite
def merges(draw: st.DrawFn) -> Drawn:
    """Items of one category, whose judges are those that `gate run` takes by itself."""
    vertical, said = draw(st.sampled_from((None, "shop", "travel"))), draw(st.sampled_from((None, "shop", "travel")))
    outputs = draw(st.sampled_from(SAMPLES))
    category = CATEGORIES[owner(vertical or said)]
    numbers = draw(st.lists(st.integers(0, 11), min_size=1, max_size=10, unique=True))
    asked_of = tuple(draw(golden(category, number, said, outputs)) for number in numbers)
    judges = ("helpfulness", "brevity") if category == "shop_returns" else ("helpfulness",)
    return Drawn(MERGE, vertical, judges, (), asked_of)


@settings(max_examples=40)
@given(rollouts())
def test_a_rollouts_verdict_is_the_same_on_the_stream_in_gate_run_in_evaluate_gate_and_by_metrics(drawn: Drawn) -> None:
    registry = built(drawn.changes)
    found = by_evaluate_gate(drawn, registry)
    assert by_metrics(drawn, registry) == found
    assert by_stream(drawn, registry) == found
    assert by_gate_run(drawn) == found


@settings(max_examples=25)
@given(merges(), st.integers(1, 3))
def test_a_verdict_before_a_merge_is_the_same_in_gate_run_in_evaluate_gate_and_by_metrics(
    drawn: Drawn, times: int
) -> None:
    """Given several times to those who take lists; a dataset's file with an item twice is refused."""
    registry = built(drawn.changes)
    repeated = replace(drawn, golden=drawn.golden * times)
    found = by_evaluate_gate(repeated, registry)
    assert by_metrics(repeated, registry) == found
    assert by_gate_run(drawn) == found


def test_what_is_drawn_has_verdicts_of_every_kind() -> None:
    """Else the ways might agree for want of anything to differ on."""
    levels, codes = set(), set()

    @settings(max_examples=150, derandomize=True, database=None)
    @given(rollouts() | merges())
    def look(drawn: Drawn) -> None:
        level, _, why = by_evaluate_gate(drawn, built(drawn.changes))
        levels.add(level)
        codes.update(why)

    look()
    assert levels == {"pass", "warn", "fail"}
    assert codes >= {"below_threshold", "floor_breach", "insufficient_sample", "judge_unavailable"}
