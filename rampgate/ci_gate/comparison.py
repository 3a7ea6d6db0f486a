"""Judges the same outputs with two versions of the registry, and says what differs (PC5 §9.3, FR-12).

Both versions go the gates' one way, so that a difference here is one at a gate: an item that passes for one and not for
the other, a gate that decides otherwise, a past ramp that would have gone another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from agents.traces import trace_bytes
from evalcore.gates.evaluate import ScoredGate, score_gate
from evalcore.gates.gate import Gate, prepare
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Scored
from evalcore.scoring.items import Item, items_of
from evalcore.scoring.runner import Scorer
from evalcore.scoring.sampling import fingerprint
from schemas.judges import Milestone
from schemas.verdicts import VerdictLevel


@dataclass(frozen=True)
class Flip:
    """An item that passes for one version of a judge and not for the other; None where one gave no score."""

    item: str
    old: float | None
    new: float | None


@dataclass(frozen=True)
class JudgeChange:
    """A judge that the two versions have otherwise. `n` items were scored by both; `shift` is the mean difference of
    their scores, None without any. `missing` were scored by one of the two alone."""

    judge: str
    old_version: str
    new_version: str
    n: int
    old_mean: float | None
    new_mean: float | None
    shift: float | None
    missing: int
    to_pass: tuple[Flip, ...]
    to_fail: tuple[Flip, ...]


@dataclass(frozen=True)
class PastRamp:
    """A gate of the past, decided by both versions on the traces at hand. `same_sample`: they are the ones that it was
    decided on. `otherwise`: the two versions decide apart."""

    request_id: str
    agent_id: str
    agent_version: str
    milestone: Milestone
    decided: str
    old: VerdictLevel
    new: VerdictLevel
    traces: int
    same_sample: bool

    @property
    def otherwise(self) -> bool:
        return self.old is not self.new


def changed(old: Registry, new: Registry, vertical: str | None) -> list[str]:
    """Returns the judges of both versions whose scores may differ, or whose limits do."""
    return [
        name
        for name in old.rules()
        if name in new.rules() and _facts(old.judge(name, vertical)) != _facts(new.judge(name, vertical))
    ]


def _facts(judge: Judge) -> tuple[object, ...]:
    return (
        judge.version, judge.floor, judge.tolerance, dict(judge.thresholds), dict(judge.enforcement), judge.filter,
        judge.fires, judge.rule.sampling_rate, judge.dimensions,
    )  # fmt: skip


async def compared(
    old: Registry,
    new: Registry,
    gate_of: Callable[[Registry], Gate],
    scorer: Scorer | None,
    today: date,
) -> tuple[ScoredGate, ScoredGate, list[JudgeChange]]:
    """Returns the gate by either version, and what differs of each changed judge. `gate_of` prepares the same outputs
    for a version."""
    gates = [gate_of(registry) for registry in (old, new)]
    before, after = [await score_gate(scorer, gate, today) for gate in gates]
    names = {judge.id for gate in gates for judge in gate.judges.values()}
    vertical = gates[0].vertical
    found = [
        _change(old.judge(name, vertical), new.judge(name, vertical), gates[0].milestone, before, after)
        for name in changed(old, new, vertical)
        if name in names
    ]
    return before, after, found


def _change(was: Judge, now: Judge, milestone: Milestone, before: ScoredGate, after: ScoredGate) -> JudgeChange:
    old, new = _values(was.id, before), _values(now.id, after)
    both = [name for name in old if name in new]
    pairs = [(one, other) for one, other in ((old[name], new[name]) for name in both) if None not in (one, other)]
    scores = [(float(one or 0), float(other or 0)) for one, other in pairs]
    to_pass, to_fail = list[Flip](), list[Flip]()
    for name in both:
        flip = Flip(name, old[name], new[name])
        passed = flip.old is not None and was.passes(flip.old, milestone)
        passes = flip.new is not None and now.passes(flip.new, milestone)
        if passed is not passes and (passed or passes):
            (to_pass if passes else to_fail).append(flip)
    return JudgeChange(
        was.id, was.version, now.version, len(scores), _mean(one for one, _ in scores), _mean(two for _, two in scores),
        _mean(two - one for one, two in scores), len(old.keys() | new.keys()) - len(scores), tuple(to_pass),
        tuple(to_fail),
    )  # fmt: skip


def _values(judge: str, gate: ScoredGate) -> dict[str, float | None]:
    """Each item's score by a judge, None where it gave none."""
    return {
        item.id: found.answer.value if isinstance(found.answer, Scored) else None
        for (by, item), found in zip(gate.assignments, gate.judgements, strict=True)
        if by.id == judge
    }


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return round(sum(found) / len(found), 6) if found else None


async def redecided(
    old: Registry,
    new: Registry,
    verdicts: Iterable[Mapping[str, Any]],
    traces: Sequence[Mapping[str, Any]],
    scorer: Scorer | None,
    today: date,
) -> list[PastRamp]:
    """Returns each gate of past verdicts of which there are traces, decided by both versions. Its judges are those that
    decided then, as far as both versions have them; baselines and the join's coverage of that time are left out."""
    found = []
    for verdict in verdicts:
        agent, version = str(verdict.get("agent_id")), str(verdict.get("agent_version"))
        own = [one for one in traces if definition(one) == (agent, version)]
        if not own:
            continue
        for one in verdict.get("gates") or ():
            milestone = Milestone(one["milestone"])
            names = [name for name in one["per_judge_scores"] if _has(old, name) and _has(new, name)]
            if milestone is Milestone.PRE_MERGE or not names:
                continue
            gates = [_on_traces(registry, milestone, own, names, verdict.get("vertical")) for registry in (old, new)]
            before, after = [(await score_gate(scorer, gate, today)).verdict.verdict for gate in gates]
            same = (one.get("sample") or {}).get("fingerprint") == fingerprint(map(_drawn, gates[0].items))
            request = str(verdict.get("request_id"))
            size = len(gates[0].items)
            found.append(PastRamp(request, agent, version, milestone, str(one["verdict"]), before, after, size, same))
    return found


def _on_traces(
    registry: Registry, milestone: Milestone, traces: Sequence[Mapping[str, Any]], names: Sequence[str], of: str | None
) -> Gate:
    items = items_of(list(traces), milestone, registry.manifest.get("schema", {}))
    return prepare(milestone, items, names, registry, of)


def _drawn(item: Item) -> str:
    """Returns an item's id as samples of the stream have it: of a trace, its bytes."""
    try:
        return trace_bytes(item.id).hex() if item.context == "online" else item.id
    except ValueError:
        return item.id


def definition(trace: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the agent's id and version that a trace is of."""
    metadata = trace.get("metadata") or {}
    return str(metadata.get("agent_id")), str(metadata.get("agent_version"))


def _has(registry: Registry, name: str) -> bool:
    try:
        registry.spelled(name)
    except KeyError:
        return False
    return True
