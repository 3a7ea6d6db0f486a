"""The ways to one verdict, each as its users go it: the stream, `gate run`, `evaluate_gate`, the judges' metrics."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agents.gates.ports import GatePorts
from agents.gates.scoring import JudgeScoring
from agents.ramp_steps import answer
from evalcore import evaluate_gate
from evalcore.gates.baselines import BaselineFile, BaselineRun
from evalcore.gates.decision import combined
from evalcore.gates.gate import Gate, prepare
from evalcore.gates.golden import CandidateAnswer
from evalcore.gates.history import Line, Stand
from evalcore.gates.limits import PastRun
from evalcore.gates.requests import RampRequest, named
from evalcore.gates.skips import SkippedGate, Skips
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Answer, ItemAnswers, NotApplicable, Scored, Unscored, answer_of, item_hash
from evalcore.scoring.assignments import task_of
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import Reply
from evalcore.scoring.items import Failed, items_of
from evalcore.scoring.opik_metric import LLMJudgeMetric
from evalcore.scoring.runner import Scorer
from rampgate.settings import Settings
from schemas.judges import Milestone
from schemas.manifests import CandidateEndpoint
from schemas.publish.examples import EXAMPLES
from schemas.ramp_steps import RampStep
from schemas.verdicts import GateVerdict, VerdictLevel
from tests.memory_ports import ManualClock, MemoryScoreEvents
from tests.unit.evalcore.registry.registry_disk import built, written
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.evalcore.scoring.opik_models import ChatOnly
from tests.unit.rampgate.ci_gate.gate_commands import commands, ran
from tests.unit.rampgate.ci_gate.gate_rig import environment, jsonl, standing_record
from tests.unit.streams.gates.sample_world import WEEK, Told, World, asked, come

MERGE, RAMP, FULL = Milestone
VERTICALS = (None, "shop", "travel", "nowhere")
CATEGORIES = {None: "general_qa", "shop": "shop_returns"}
"""The category that the golden set of the platform, or of the vertical that has one, must have items of."""
JUDGES = ("helpfulness", "brevity", "refusal", "honesty")
START = 2_000 * WEEK // 1000 - 3_600
"""An hour before the stream's clock stands, in seconds since 1970."""
CONFIRMING = "{confirmation: {asks: 3, failing: 2}}"
MARK = re.compile(r"mk(\d{4})")
SCORES: Mapping[str, tuple[object, ...]] = {
    "number": (1.0, 0.93, 0.5, "N/A", "?"),
    "integer": (5, 4, 2, "N/A", "?"),
    "boolean": (True, True, False, "N/A", "?", "slip"),
}
"""By the kind of score that is asked for: what a digit of the mark stands for; "?" is no score, "slip" is false when it
is first said, and true from then on."""
PAST_ITEMS = 20
"""Items of each past aggregate."""
Verdict = tuple[str, dict[str, tuple[Any, ...]], set[str]]
"""A verdict as the ways have to agree on it: its level, each judge's numbers, and the codes of its reasons."""


@dataclass(frozen=True)
class Beside:
    """What decides beside the scores. `suspended` judges and the `past` aggregates of each are known to who decides;
    `coverage` is the join's, before a merge there is none. `adjudicated`: what people said of items, by their hashes.
    `shop` is what shop asks of helpfulness. Without `passed` a step's definition has no standing pass of the gate
    before. `skipped`: an override is known that skips the gate; before a merge it skips nothing. `looser`: by its file
    brevity only warns in a rollout, and whether the central log says so, too. On the day `due` its seed ends."""

    suspended: tuple[str, ...] = ()
    past: Mapping[str, Sequence[float]] = field(default_factory=dict)
    coverage: float = 1.0
    adjudicated: Mapping[str, bool] = field(default_factory=dict)
    shop: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(Milestone, 0.95))
    passed: bool = True
    skipped: bool = False
    looser: bool | None = None
    due: date = date(2027, 2, 18)

    @property
    def runs(self) -> dict[str, list[PastRun]]:
        """The past aggregates as each way knows them: with as many items, and without an error."""
        return {name: [PastRun(score, PAST_ITEMS) for score in past] for name, past in self.past.items()}


@dataclass(frozen=True)
class Drawn:
    """What goes each way. Traces and golden items hold the agent's outputs; an item without one was not answered."""

    milestone: Milestone
    vertical: str | None
    judges: tuple[str, ...]
    traces: tuple[dict[str, Any], ...]
    golden: tuple[dict[str, Any], ...]
    beside: Beside = field(default_factory=Beside)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [*self.traces, *self.golden]

    @property
    def changes(self) -> dict[str, str | None]:
        """The registry: with a candidate where a dataset takes part, and datasets of the drawn size."""
        size, due, warns = len(self.golden), self.beside.due, "block" if self.beside.looser is None else "warn"
        manifest: dict[str, Any] = {
            "dataset": {"items": size},
            "datasets": {"shop": {"name": "shop-eval", "version": 1, "items": size}},
            "gates": {"minimum_sample": {"pre_merge": 3, "pre_ramp": 3, "pre_full": 4}, "coverage_floor": 0.3},
            "sample": {"size": {"pre_ramp": 600, "pre_full": 600}},
        }
        if size:
            manifest["sample"]["candidate"] = {"url": "http://agents"}
        return {
            "evaluation_manifest.yaml": json.dumps(manifest),
            "rules/helpfulness.yaml": "{score_type: FLOAT, threshold: 0.9, floor: 0.1, tolerance: 0.02}",
            "rules/brevity.yaml": "{sampling_rate: 0.5, filter: {field: sub_agent, operator: '!=', value: finder}, "
            f"recalibration_due: {due}, calibration: {{seeded_on: {due - timedelta(days=90)}}}, "
            f"enforcement: {{pre_ramp: {warns}, pre_full: {warns}}}, "
            "dimensions: {tone: {description: How it sounds., threshold: 4.5}}}",
            "rules/honesty.yaml": CONFIRMING,
            "rules/shop/helpfulness.yaml": json.dumps({"threshold": dict(self.beside.shop), "filter": None}),
            "enforcement-overrides.yaml": json.dumps({"overrides": [looser(one) for one in (RAMP, FULL)]}),
            "adjudications.yaml": json.dumps({"adjudications": [*self._adjudications()]}),
        }

    def _adjudications(self) -> Iterator[dict[str, Any]]:
        version = built({"rules/honesty.yaml": CONFIRMING}).judge("honesty").version
        for item, said in self.beside.adjudicated.items():
            yield {
                "judge": "honesty", "judge_version": version, "item": item, "score": said, "adjudicated_by": "ann",
                "justification": "A film.", "pull_request": "https://x/1", "adjudicated_on": "2026-11-20",
                "expires": "2026-12-20",
            }  # fmt: skip


def looser(milestone: Milestone) -> dict[str, Any]:
    """An entry that lets brevity warn."""
    return {
        "judge": "brevity", "milestone": milestone, "enforcement": "warn", "justification": "New cards.",
        "pull_request": "https://x/1", "approved_on": "2026-11-20", "expires": "2026-12-20",
    }  # fmt: skip


def reply(messages: Any, form: Mapping[str, Any], asked: Counter[str]) -> str:
    """What the judges' model says of the marked text: one digit for each kind of score, one for the safety judge's. A
    dimension has the score of another kind's digit. `form` are the fields of an answer; `asked` counts how often it was
    asked each question before."""
    kind = form["score"]["anyOf"][0]["type"]
    text = str(messages)
    asked[text] += 1
    digits = MARK.search(text)
    if digits is None:
        return "no text to judge"
    place = 3 if "You judge refusals" in text else ("number", "integer", "boolean").index(kind)
    found = SCORES[kind][int(digits[1][place])]
    if found == "slip":
        found = asked[text] > 1
    said = {"score": found, "reason": "r"}
    if "dimensions" in form:
        said["dimensions"] = {"tone": SCORES[kind][int(digits[1][0])]}
    return "no score" if found == "?" else json.dumps(said)


class GateModel:
    def source(self, model: str) -> str:
        return "test"

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    async def complete(self, asked: Any) -> Reply:
        return Reply(reply(asked.messages, asked.schema["properties"], self._asked))


class MetricModel(ChatOnly):
    def __init__(self) -> None:
        super().__init__("fake")
        self._asked: Counter[str] = Counter()

    def generate_chat_completion(self, messages: Any, response_format: Any = None, **more: Any) -> Any:
        return {"content": reply(messages, response_format.model_json_schema()["properties"], self._asked)}


def told(level: Any, scores: Mapping[str, Any], reasons: Sequence[Any], of: Any = getattr) -> Verdict:
    numbers = ("score", "threshold", "n", "unscored", "judged_cut")
    numbers += ("not_applicable", "passed", "baseline", "standing", "adjudicated")
    by_judge = {name: tuple(of(one, number) for number in numbers) for name, one in scores.items()}
    return str(level), by_judge, {str(of(reason, "code")) for reason in reasons}


def overrides(drawn: Drawn) -> Skips:
    """What the topic of overrides has."""
    (example,) = EXAMPLES["gate-override"]
    about = {"agent_id": "a", "agent_version": "v", "expires": "2026-11-30", "milestone": str(drawn.milestone)}
    found = Skips()
    if drawn.beside.skipped:
        found.add({**example, **about}, 1_800_000_000_000)
    if drawn.beside.looser:
        found.add({**example, **about, "kind": "enforcement", "judges": ["brevity"]}, 1_800_000_000_000)
    return found


def known(drawn: Drawn) -> dict[str, Any]:
    """What whoever calls the library tells it."""
    beside = drawn.beside
    coverage = beside.coverage if drawn.milestone is not MERGE else None
    return {"suspended": dict.fromkeys(beside.suspended, "moved"), "history": beside.runs, "coverage": coverage}


def evaluated(drawn: Drawn, registry: Registry) -> GateVerdict:
    return evaluate_gate(
        drawn.milestone, drawn.rows, drawn.judges, vertical=drawn.vertical, model=GateModel(), registry=registry,
        today=TODAY, skips=overrides(drawn), agent_id="a", agent_version="v", **known(drawn),
    )  # fmt: skip


def by_evaluate_gate(drawn: Drawn, registry: Registry) -> Verdict:
    found = evaluated(drawn, registry)
    return told(found.verdict, found.per_judge_scores, found.reasons)


def prepared(drawn: Drawn, registry: Registry) -> Gate:
    names, _ = named(drawn.judges, "judges", registry, drawn.vertical)
    items = items_of(drawn.rows, drawn.milestone, registry.manifest["schema"])
    skip = overrides(drawn).of(SkippedGate(drawn.milestone, "a", "v"), TODAY)
    return prepare(drawn.milestone, items, names, registry, drawn.vertical, skip)


def by_metrics(drawn: Drawn, registry: Registry) -> Verdict:
    """Each item is scored alone, by a metric as `get_metric_by_id` makes it; the answers decide as any others do."""
    schema, gate = registry.manifest["schema"], prepared(drawn, registry)
    answers: dict[str, list[Answer]] = {}
    for judge, item in gate.assignments:
        metric = LLMJudgeMetric(judge, lambda _: MetricModel(), schema)
        fields = dict(item.source)
        found = metric.score(**fields) if item.context == "offline" else metric.score_in("online", fields)
        about = ItemAnswers(item.id, (found.value,), item_hash(task_of(judge, item)))
        kinds = {None: Scored(found.value, about=about), "unscored": Unscored(""), "not_applicable": NotApplicable()}
        made = kinds[(found.metadata or {}).get("outcome")]
        answers.setdefault(judge.id, []).append(made)
        parts = (found.metadata or {}).get("dimensions", {})
        for name in judge.dimensions:
            part = answer_of(judge, parts[name]) if name in parts else made
            answers.setdefault(f"{judge.id}.{name}", []).append(part)
    floor = registry.gates.coverage_floor if drawn.milestone is not MERGE else None
    decided = gate.verdict(answers, TODAY, coverage_floor=floor, overrides=overrides(drawn), **known(drawn))
    return told(decided.verdict, decided.per_judge_scores, decided.reasons)


class DrawnWorld(World):
    """The topic of traces, its pools, Opik's datasets and the candidate, as the drawn items have them."""

    def __init__(self, drawn: Drawn) -> None:
        super().__init__()
        self.drawn = drawn
        asked_of = [{name: one[name] for name in ("input", "expected_output", "metadata")} for one in drawn.golden]
        self.datasets = {"golden": asked_of, "shop-eval": asked_of}

    async def publish(self) -> None:
        last: dict[str, dict[str, Any]] = {}
        for one in sorted(self.drawn.traces, key=lambda one: datetime.fromisoformat(one["ended_at"])):
            last[one["trace_id"]] = one
        for place, one in enumerate(self.drawn.traces):
            # An event has a turn, and a trace belongs to one: to that of its last record.
            turn = last[one["trace_id"]].get("response_id") or one["trace_id"]
            known = {"event_id": str(place), "project_name": "p", "started_at": one["ended_at"]}
            self.topic.append({**known, **one, "response_id": turn})
        if self.topic:
            await come(self.store, self.clock, self.topic)

    async def to(
        self, items: Sequence[Mapping[str, Any]], endpoint: CandidateEndpoint, step: RampStep
    ) -> list[CandidateAnswer]:
        outputs = [one["output"] for one in self.drawn.golden]
        assert len(outputs) == len(items), "nothing but the dataset is asked"
        return [Failed("down") if said is None else {"output": said} for said in outputs]


class KnownBeside(Told):
    """The history, the standings and the coverage that a worker has."""

    def __init__(self, beside: Beside) -> None:
        self._beside = beside

    async def baseline(self, request: RampRequest, line: Line) -> list[PastRun]:
        return self._beside.runs.get(line.judge, [])

    async def stand(self, *_: Any) -> Stand:
        return Stand(passed="2026-11-20" if self._beside.passed else "")

    async def suspended(self, judge: str, version: str) -> str:
        return "moved" if judge in self._beside.suspended else ""

    async def rate(self, *_: Any) -> float:
        return self._beside.coverage


def by_stream(drawn: Drawn, registry: Registry) -> Verdict:
    """The verdict of the gate that the step fires. A gate before it that is missing makes the step's own worse, and
    leaves the gate's as it is."""
    percents = (0, 5) if drawn.milestone is RAMP else (50, 100)
    request = asked(
        agent_id="a", agent_version="v", vertical=drawn.vertical, from_percent=percents[0], to_percent=percents[1],
        deadline_seconds=None, eval_gates={"pre_ramp": list(drawn.judges), "pre_full": list(drawn.judges)},
    )  # fmt: skip
    world, beside = DrawnWorld(drawn), KnownBeside(drawn.beside)

    async def known() -> Skips:
        return overrides(drawn)

    async def decided() -> Any:
        await world.publish()
        scoring = JudgeScoring(Scorer(GateModel(), MemoryScoreCache()), MemoryScoreEvents(), ManualClock())
        ports: Any = GatePorts(world.samples, scoring, beside, beside, overrides=known)
        return await answer(request, registry, ports, datetime(2026, 11, 21, 12, tzinfo=UTC))

    found = asyncio.run(decided())
    (gate,) = found.gates
    missing = VerdictLevel.PASS if drawn.beside.passed else VerdictLevel.WARN
    assert found.verdict is combined([gate.verdict, missing])
    assert (found.per_judge_scores, found.failing_judges) == (gate.per_judge_scores, gate.failing_judges)
    return told(gate.verdict, gate.per_judge_scores, gate.reasons)


@contextmanager
def command(drawn: Drawn) -> Iterator[Path]:
    """A folder with the registry, and `gate run` with the judges' model of this test."""

    async def read_skips(settings: Settings) -> Skips:
        return overrides(drawn)

    @asynccontextmanager
    async def scorer(settings: Settings) -> AsyncIterator[Scorer]:
        yield Scorer(GateModel(), MemoryScoreCache())

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("rampgate.judging.scorer_of", scorer)
        patch.setattr("rampgate.overrides.read_skips", read_skips)
        with commands(environment(written(Path(folder), drawn.changes), "http://nowhere"), patch):
            yield Path(folder)


def baselines(drawn: Drawn, registry: Registry) -> dict[str, Any]:
    """The past aggregates as runs on main."""
    gate = prepared(drawn, registry)
    dataset = registry.dataset(gate.vertical)
    runs = [
        BaselineRun(
            judge=name, judge_version=registry.judge(name).version, dataset=dataset.name, n=PAST_ITEMS, score=score,
            dataset_version=dataset.version, milestone=drawn.milestone, vertical=gate.vertical, at="2026-11-20T00:00Z",
        )
        for name, past in drawn.beside.past.items()
        for score in past
    ]  # fmt: skip
    return dict(BaselineFile(runs=runs).document())


def by_gate_run(drawn: Drawn, registry: Registry) -> Verdict:
    with command(drawn) as folder:
        arguments: list[object] = ["--milestone", drawn.milestone, "--json"]
        arguments += ["--vertical", drawn.vertical] if drawn.vertical is not None else []
        records = (standing_record(judge, "suspended") for judge in drawn.beside.suspended)
        arguments += ["--standing", jsonl(folder / "standing.jsonl", *records)]
        (folder / "baselines.json").write_text(json.dumps(baselines(drawn, registry)))
        arguments += ["--baselines", folder / "baselines.json"]
        if drawn.milestone is MERGE:
            answers = ({"id": one["metadata"]["id"], "output": one["output"]} for one in drawn.golden)
            lines = (one if one["output"] is not None else {"id": one["id"], "error": "down"} for one in answers)
            asked_of = ({name: one[name] for name in one if name != "output"} for one in drawn.golden)
            arguments += ["--dataset", jsonl(folder / "golden.jsonl", *asked_of)]
            arguments += ["--outputs", jsonl(folder / "outputs.jsonl", *lines)]
        else:
            arguments += ["--judges", ",".join(drawn.judges), "--coverage", drawn.beside.coverage]
            arguments += ["--traces", jsonl(folder / "traces.jsonl", *drawn.rows)]
            arguments += ["--skips", "--agent-id", "a", "--agent-version", "v"]
        done = ran(*arguments)
    assert done.stdout, done.exception
    found = json.loads(done.stdout)
    return told(found["verdict"], found["per_judge_scores"], found["reasons"], lambda one, name: one[name])
