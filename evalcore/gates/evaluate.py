"""Evaluates a gate in one call: judges, limits, verdict (PC5 §5.4 `evaluate_gate`). An edge: judges call their model.

`evaluate_gate` is for callers who hold items or traces; requests on the stream and `rampgate gate run` decide by the
same steps, those of `evalcore.gates.gate`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from evalcore import reloading
from evalcore.gates.gate import Gate, prepare, wrong_vertical
from evalcore.gates.limits import Past
from evalcore.gates.requests import named
from evalcore.gates.skips import SkippedGate, Skips
from evalcore.registry import disk
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Judgement, by_name
from evalcore.scoring.assignments import Assignment, arrived, score_assignments
from evalcore.scoring.cache import MemoryScoreCache, ScoreCache
from evalcore.scoring.calls import Model, Spend
from evalcore.scoring.chat_model import model_key
from evalcore.scoring.items import distinct, items_of
from evalcore.scoring.model_caller import CallLimits
from evalcore.scoring.runner import Scorer
from schemas.judges import Milestone
from schemas.settings import in_the_clear
from schemas.verdicts import Code, GateVerdict, Reason, VerdictLevel

if TYPE_CHECKING:
    import httpx

    from evalcore.scoring.chat_model import Client


IN_THE_CLEAR = "RAMPGATE_ALLOW_PLAINTEXT"
__all__ = ["ScoredGate", "TracesOrDataset", "aevaluate_gate", "evaluate_gate", "score_gate", "scorer_for"]

TracesOrDataset = Sequence[Mapping[str, Any]]
"""Items of a dataset, each with the agent's `output` in it, or traces, as Opik and the stream have them."""


@dataclass(frozen=True)
class ScoredGate:
    """A verdict with its assignments and, in the same order, their judgements."""

    verdict: GateVerdict
    assignments: Sequence[Assignment] = ()
    judgements: Sequence[Judgement] = ()


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
    history: Mapping[str, Sequence[Past]] | None = None,
    coverage: float | None = None,
    suspended: Mapping[str, str] | None = None,
    skips: Skips | None = None,
    agent_id: str = "",
    agent_version: str = "",
    registry: Registry | None = None,
    today: date | None = None,
) -> GateVerdict:
    """Returns the verdict of the named judges and of every inherited safety judge.

    At pre_merge items of a dataset are judged, each by all judges; at pre_ramp and pre_full traces, as each judge's
    filter and sampling rate say. An item without an output is unscored. `model` judges; without one it is the endpoint
    of RAMPGATE_MODEL_URL (key: RAMPGATE_MODEL_KEY, or what the file RAMPGATE_MODEL_KEY_FILE holds), asked through
    `client`, if given. `history`: runs of each judge on main, oldest first, each with its error or as its mean alone.
    `coverage`: the join's rate, compared with the manifest's floor where it is given. `suspended`: why a judge is
    suspended, by its id. `skips`: overrides; one about this gate of `agent_id` and `agent_version` leaves only the
    safety judges, and without them no judge of a rollout only warns. `within` seconds are all there is; what is not
    scored by then is unscored.

    The same item counts once, however often it is given. Without `vertical` the limits are those of the vertical that
    all traces are of. An unknown judge or vertical, or an empty list, makes a `fail` with `invalid_request`. Raises
    ValueError for an unknown milestone and for a key's file without a key, TypeError for what is no list of objects,
    BrokenRegistry while no registry serves.
    """
    at = _milestone(milestone)
    registry = registry or reloading.current()
    if isinstance(judge_ids, str):
        raise TypeError("judge_ids: a list of ids is needed, not a text")
    names, wrong = named(judge_ids, "judge_ids", registry, vertical)
    wrong += wrong_vertical(vertical, registry)
    if wrong:
        return GateVerdict({}, VerdictLevel.FAIL, [], at, [Reason(Code.INVALID_REQUEST, why) for why in wrong])
    items = items_of(traces_or_dataset, at, registry.manifest.get("schema", {}))
    today = today or disk.today()
    skip = skips.of(SkippedGate(at, agent_id, agent_version), today) if skips is not None else None
    gate = prepare(at, items, names, registry, vertical, skip)
    floor = registry.gates.coverage_floor if coverage is not None else None
    async with scorer_for(model, client, cache, limits) as scorer:
        scored = await score_gate(
            scorer, gate, today, spend=spend, within=within,
            history=history, coverage=coverage, coverage_floor=floor, suspended=suspended, overrides=skips,
        )  # fmt: skip
    return scored.verdict


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


async def score_gate(
    scorer: Scorer | None,
    gate: Gate,
    today: date,
    *,
    spend: Spend | None = None,
    within: float | None = None,
    **beside: Any,
) -> ScoredGate:
    """Have the judges score a prepared gate, and decide. `beside` goes to `Gate.verdict`. Items whose answer is still
    to come are judged as they come; `within` counts from the last one."""
    async with arrived(scorer, f"{gate.milestone}", gate.judges.values(), gate.items, spend) as (items, scoring):
        gate = replace(gate, items=distinct(items))
        judgements = await score_assignments(scoring, gate.assignments, within)
    answers = by_name((judge for judge, _ in gate.assignments), judgements)
    return ScoredGate(gate.verdict(answers, today, **beside), gate.assignments, judgements)


@asynccontextmanager
async def scorer_for(
    model: Model | None = None,
    client: Client | None = None,
    cache: ScoreCache | None = None,
    limits: CallLimits | None = None,
    *,
    url: str | None = None,
    key: str | None = None,
    words: bool = False,
) -> AsyncIterator[Scorer | None]:
    """Yields a scorer for as long as the context lasts; None where there is no model: then the gate fails closed.

    A client that is made here is closed here. With `words` the cache keeps the judges' reasons, too. Raises ValueError
    where the key is in a file that can't be read, and where the environment's address would have it sent in the clear
    to another machine.
    """
    limits = limits or CallLimits()
    cache = cache or MemoryScoreCache()
    if model is not None:
        yield Scorer(model, cache, limits, words=words)
        return
    from evalcore.scoring.http_client import HttpClient
    from evalcore.scoring.opik_model import LITELLM, model_at

    given, url = url, url or os.environ.get("RAMPGATE_MODEL_URL")
    if not url:
        yield None
        return
    key = key or model_key()
    if key and given is None and in_the_clear(url.removeprefix(LITELLM)) and not _allowed():
        raise ValueError(
            f"RAMPGATE_MODEL_URL: the key would be sent in the clear; use https, or set {IN_THE_CLEAR}=true"
        )
    async with AsyncExitStack() as stack:
        if client is None:
            client = await stack.enter_async_context(HttpClient(limits.at_once, limits.call_seconds))
        yield Scorer(model_at(url, client, key), cache, limits, words=words)


def _allowed() -> bool:
    return os.environ.get(IN_THE_CLEAR, "").strip().lower() in ("true", "1", "yes", "on")


def _milestone(word: str) -> Milestone:
    try:
        return Milestone(word)
    except ValueError:
        raise ValueError(f"no milestone {word!r}; there are {', '.join(Milestone)}") from None
