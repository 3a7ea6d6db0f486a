"""A gate in one call: judges, their limits, the verdict (PC5 §5.4 `evaluate_gate`). An edge: judges call their model.

`evaluate_gate` is for callers who have items or traces at hand; ramp-step requests on the stream and
`rampgate gate run` decide by the same steps.

Traces at hand as the sample of a rollout gate: whose judges score them, and which of them (PC5 §5.5). Pure.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from evalcore import reloading
from evalcore.gates.decision import Evidence, decide
from evalcore.gates.golden import firing_on
from evalcore.gates.requests import named
from evalcore.gates.verdict import OFF, deciding, judged
from evalcore.registry import disk
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Judgement, by_name
from evalcore.scoring.assignments import Pair, pairs_of, score_pairs
from evalcore.scoring.cache import MemoryScoreCache, ScoreCache
from evalcore.scoring.calls import Model, Spend
from evalcore.scoring.chat_model import model_key
from evalcore.scoring.items import Item, items_of
from evalcore.scoring.model_caller import CallLimits
from evalcore.scoring.runner import Scorer
from evalcore.scoring.sampling import fingerprint
from schemas.judges import Enforcement, Milestone
from schemas.verdicts import Code, Composition, GateVerdict, Reason, SampleFacts, VerdictLevel

if TYPE_CHECKING:
    import httpx


SCOPE = "file"
"""Whoever made the file says whose traces they are."""


@dataclass(frozen=True)
class Traced:
    """`names` of the judges that decide; each scores what of the items is its own."""

    items: Sequence[Item]
    names: Sequence[str]
    source: str

    @property
    def facts(self) -> SampleFacts:
        golden = sum(item.context == "offline" for item in self.items)
        composition = Composition(golden, len(self.items) - golden)
        return SampleFacts(SCOPE, fingerprint(one.id for one in self.items), len(self.items), None, composition, None)


def traced(
    traces: Sequence[Mapping[str, Any]],
    source: str,
    listed: Sequence[str] | None,
    milestone: Milestone,
    registry: Registry,
    vertical: str | None,
) -> tuple[Traced, list[str]]:
    """By the judges of a list, as an experiment's (PC6 §5.6); without one by those of the traces' categories, each on
    the traces of its own, and those of no category that is known by all of them. Safety judges in any case. And what is
    wrong in the list, or with the want of one."""
    items = items_of(traces, milestone, registry.manifest.get("schema", {}))
    if listed is not None:
        names, wrong = named(listed, "--judges", registry, vertical)
        return Traced(items, names, source), wrong
    firing = [firing_on(one, registry, vertical) for one in traces]
    found = sorted(set[str]().union(*(judges or () for judges in firing)))
    wrong = [] if found else ["no trace has a metadata.category that the manifest has: name the judges, --judges a,b"]
    items = [replace(item, judges=judges) for item, judges in zip(items, firing, strict=True)]
    return Traced(items, found, source), wrong


__all__ = ["Ran", "TracesOrDataset", "aevaluate_gate", "evaluate_gate", "gate_on", "run_gate", "scorer_for"]

TracesOrDataset = Sequence[Mapping[str, Any]]
"""Items of a dataset, each with the agent's `output` in it, or traces, as Opik and the stream have them."""


@dataclass(frozen=True)
class Ran:
    """A verdict with what it was made of: each pair of judge and item, and what came of it."""

    verdict: GateVerdict
    pairs: Sequence[Pair] = ()
    found: Sequence[Judgement] = field(default_factory=tuple)


async def aevaluate_gate(
    milestone: str,
    traces_or_dataset: TracesOrDataset,
    judge_ids: Sequence[str],
    *,
    vertical: str | None = None,
    model: Model | None = None,
    client: httpx.AsyncClient | None = None,
    cache: ScoreCache | None = None,
    limits: CallLimits | None = None,
    spend: Spend | None = None,
    within: float | None = None,
    history: Mapping[str, Sequence[float]] | None = None,
    coverage: float | None = None,
    registry: Registry | None = None,
    today: date | None = None,
) -> GateVerdict:
    """The verdict of the named judges and of every inherited safety judge.

    At pre_merge items of a dataset are judged, each by all judges; at pre_ramp and pre_full traces, as each judge's
    filter and sampling rate say. An item without an output is unscored. `model` judges; without one it is the endpoint
    of RAMPGATE_MODEL_URL (key: RAMPGATE_MODEL_KEY, or what the file RAMPGATE_MODEL_KEY_FILE holds), asked through
    `client`, if given. `history`: aggregates of each judge on main, oldest first. `coverage`: the join's rate, held
    against the manifest's floor where it is given. `within` seconds are all there is; what is not scored by then is
    unscored.

    An unknown judge or an empty list makes a `fail` with `invalid_request`. Raises ValueError for an unknown milestone
    and for a key's file without a key, TypeError for what is no list of objects, BrokenRegistry while no registry
    serves.
    """
    at = _milestone(milestone)
    registry = registry or reloading.current()
    if isinstance(judge_ids, str):
        raise TypeError("judge_ids: a list of ids is needed, not a text")
    names, wrong = named(judge_ids, "judge_ids", registry, vertical)
    if wrong:
        return GateVerdict({}, VerdictLevel.FAIL, [], at, [Reason(Code.INVALID_REQUEST, why) for why in wrong])
    items = items_of(traces_or_dataset, at, registry.manifest.get("schema", {}))
    judges, pairs, evidence = gate_on(at, items, names, registry, vertical, coverage)
    day = today or disk.today()
    async with scorer_for(model, client, cache, limits) as scorer:
        ran = await run_gate(scorer, at, judges, pairs, evidence, history or {}, day, spend=spend, within=within)
    return ran.verdict


def evaluate_gate(
    milestone: str,
    traces_or_dataset: TracesOrDataset,
    judge_ids: Sequence[str],
    *,
    vertical: str | None = None,
    **options: Any,
) -> GateVerdict:
    """As `aevaluate_gate`, for callers who can't await; also within a running event loop, which it holds up. A `client`
    or `model` handed in must not be in use on another loop."""
    deciding = aevaluate_gate(milestone, traces_or_dataset, judge_ids, vertical=vertical, **options)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(deciding)
    with ThreadPoolExecutor(1, "evaluate-gate") as aside:
        return aside.submit(asyncio.run, deciding).result()


def gate_on(
    milestone: Milestone,
    items: Sequence[Item],
    names: Sequence[str],
    registry: Registry,
    vertical: str | None,
    coverage: float | None,
) -> tuple[dict[str, Judge], list[Pair], Evidence]:
    """Who decides, by the name that does, who of them scores which items, and what counts of the items as a whole."""
    judges = deciding(names, registry, vertical)
    floor = registry.gates.coverage_floor if coverage is not None else None
    evidence = Evidence.at(milestone, registry.gates, len(items), coverage=coverage, coverage_floor=floor)
    return judges, pairs_of(judges.values(), items), evidence


async def run_gate(
    scorer: Scorer | None,
    milestone: Milestone,
    judges: Mapping[str, Judge],
    pairs: Sequence[Pair],
    evidence: Evidence,
    history: Mapping[str, Sequence[float]],
    today: date,
    *,
    accepted: Mapping[str, Enforcement] | None = None,
    outdated: Mapping[str, str] | None = None,
    spend: Spend | None = None,
    within: float | None = None,
) -> Ran:
    """`judges` by the name that decides; `pairs` say which items each of them scores. `accepted`: what an audited
    override makes of a judge's enforcement. `outdated`: versions that main has baselines of, where it has none of the
    judge's own."""
    found = await score_pairs(scorer, f"{milestone}", pairs, spend=spend, within=within)
    answers = by_name((judge for judge, _ in pairs), found)
    beside = {
        name: judged(
            name, judge, milestone, answers.get(name, []), history.get(name, ()),
            "" if judge.fires else OFF, today, (accepted or {}).get(judge.id), (outdated or {}).get(name, ""),
        )
        for name, judge in judges.items()
    }  # fmt: skip
    return Ran(decide(milestone, beside, evidence), pairs, found)


@asynccontextmanager
async def scorer_for(
    model: Model | None = None,
    client: httpx.AsyncClient | None = None,
    cache: ScoreCache | None = None,
    limits: CallLimits | None = None,
    *,
    url: str | None = None,
    key: str | None = None,
) -> AsyncIterator[Scorer | None]:
    """None where there is no model: then nothing is scored, and the gate fails closed. A client that is made here is
    closed here. Raises ValueError where the key is in a file that can't be read."""
    limits = limits or CallLimits()
    cache = cache or MemoryScoreCache()
    if model is not None:
        yield Scorer(model, cache, limits)
        return
    from evalcore.scoring.chat_model import ChatModel, make_client

    url = url or os.environ.get("RAMPGATE_MODEL_URL")
    if not url:
        yield None
        return
    key = key or model_key()
    used = client or make_client(limits.at_once, limits.call_seconds)
    try:
        yield Scorer(ChatModel(used, url, key), cache, limits)
    finally:
        if client is None:
            await used.aclose()


def _milestone(word: str) -> Milestone:
    try:
        return Milestone(word)
    except ValueError:
        raise ValueError(f"no milestone {word!r}; there are {', '.join(Milestone)}") from None
