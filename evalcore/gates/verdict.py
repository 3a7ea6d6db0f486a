"""Makes the verdict record of a ramp-step request from its gates (contracts §3). Pure.

A verdict's id is a UUIDv5 of the request and of all that decided: the same evidence gives the same id, on any worker
and at any time.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from evalcore.gates.requests import InvalidRequest, RampRequest, Step, no_gate, of_step
from schemas.judges import Milestone
from schemas.verdicts import (
    Action,
    Code,
    EvidenceFacts,
    GateVerdict,
    JudgeStanding,
    Reason,
    SampleFacts,
    Verdict,
    VerdictLevel,
)

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "verdicts.rampgate")
_VERDICT = TypeAdapter(Verdict)
_UNTIMED = ("decided_at", "duration_seconds", "frozen_at")


@dataclass(frozen=True)
class Moment:
    """When a verdict was decided (ISO 8601), and how long that took."""

    decided_at: str
    duration_seconds: float


def of_gates(
    asked: RampRequest,
    gates: Sequence[GateVerdict],
    moment: Moment,
    *,
    sample: SampleFacts | None = None,
    config_hash: str | None = None,
    coverage: float | None = None,
    halt_at: float = 0.0,
    missing: Reason | None = None,
) -> Verdict:
    """Returns the verdict on a request whose gates have decided, or whose step fires none. `halt_at` is the percentage
    to hold after a halt; `missing` says that it has no pass of the gate before."""
    made = of_step(halt_at, gates, missing)
    evidence = EvidenceFacts(config_hash, coverage, moment.decided_at, moment.duration_seconds, clean_pass(gates))
    milestone = made.deciding.milestone if made.deciding else None
    return _verdict(asked, made, milestone, evidence, gates, sample)


def of_pull_request(
    agent_id: str,
    agent_version: str,
    gate: GateVerdict,
    moment: Moment,
    *,
    request_id: str,
    vertical: str | None = None,
    sample: SampleFacts | None = None,
    config_hash: str | None = None,
) -> Verdict:
    """Returns the verdict of the gate before a merge on an agent definition, which no one asked for on a topic: it is
    what the definition's first step asks for (contracts §3, "The gate before")."""
    action = Action.HALT if gate.verdict is VerdictLevel.FAIL else Action.PROCEED
    made = Step(gate.verdict, action, gate, None, tuple(gate.reasons))
    asked = InvalidRequest(request_id, {"agent_id": agent_id, "agent_version": agent_version}, (), request_id)
    if vertical is not None:
        asked = replace(asked, known={**asked.known, "vertical": vertical})
    chance = clean_pass([gate])
    evidence = EvidenceFacts(config_hash, None, moment.decided_at, moment.duration_seconds, chance)
    return _verdict(asked, made, gate.milestone, evidence, [gate], sample)


def refused(
    request: RampRequest | InvalidRequest,
    reasons: Sequence[Reason],
    moment: Moment,
    *,
    halt_at: float = 0.0,
    config_hash: str | None = None,
) -> Verdict:
    """Returns a `fail` without a gate's numbers: for an invalid request, a deadline that has passed, or a gate before
    that does not stand."""
    milestone = next(iter(request.milestones), None) if isinstance(request, RampRequest) else None
    made = Step(VerdictLevel.FAIL, Action.HALT, None, halt_at, tuple(reasons))
    evidence = EvidenceFacts(config_hash, None, moment.decided_at, moment.duration_seconds)
    return _verdict(request, made, milestone, evidence)


def invalid(request: InvalidRequest, moment: Moment, *, halt_at: float = 0.0) -> Verdict:
    """Returns the verdict on an invalid request, with a reason for each thing that is wrong."""
    return refused(request, [Reason(Code.INVALID_REQUEST, why) for why in request.why], moment, halt_at=halt_at)


def step_down(request: RampRequest | InvalidRequest, moment: Moment) -> Verdict:
    """Returns the pass of a step down, whatever else is known: what takes users off a version waits for nothing."""
    evidence = EvidenceFacts(None, None, moment.decided_at, moment.duration_seconds)
    return _verdict(request, no_gate("a step down needs no gate"), None, evidence)


def clean_pass(gates: Sequence[GateVerdict]) -> float | None:
    """Returns the chance that a candidate without a fault passes all judges of the gates together, suspended ones
    apart; None where that of one is unknown, and without judges."""
    scores = [score for gate in gates for score in gate.per_judge_scores.values()]
    chances = [one.clean_pass_probability for one in scores if one.standing is not JudgeStanding.SUSPENDED]
    known = [chance for chance in chances if chance is not None]
    return math.prod(known) if known and len(known) == len(chances) else None


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Returns the record's value: enums as their words, tuples as lists."""
    whole: dict[str, Any] = json.loads(json.dumps(_VERDICT.dump_python(verdict), allow_nan=False))
    return whole


def from_json(data: Mapping[str, Any]) -> Verdict:
    """Reads a record's value back, so that a stored verdict can be published again unchanged. Unknown fields are left
    out."""
    return _VERDICT.validate_python(dict(data))


def _verdict(
    request: RampRequest | InvalidRequest,
    made: Step,
    milestone: Milestone | None,
    evidence: EvidenceFacts,
    gates: Sequence[GateVerdict] = (),
    sample: SampleFacts | None = None,
) -> Verdict:
    """Returns the record of a step's verdict, with its id."""
    ids, deciding = request.known, made.deciding
    verdict = Verdict(
        request_id=request.request_id,
        verdict_id="",
        experiment_id=ids.get("experiment_id"),
        agent_id=ids.get("agent_id"),
        agent_version=ids.get("agent_version"),
        vertical=ids.get("vertical"),
        from_percent=request.stands,
        to_percent=request.wanted,
        milestone=milestone,
        verdict=made.verdict,
        gates=list(gates),
        failing_judges=list(deciding.failing_judges) if deciding else [],
        per_judge_scores=dict(deciding.per_judge_scores) if deciding else {},
        action=made.action,
        halt_at_percent=made.halt_at_percent,
        reasons=list(made.reasons),
        supersedes=None,
        sample=sample,
        evidence=evidence,
    )
    return replace(verdict, verdict_id=_id(request.body, verdict))


def _id(body: str, verdict: Verdict) -> str:
    """Returns the id of a verdict: a hash of the request's body and of all that decided, without any time."""
    content = _VERDICT.dump_python(verdict)
    del content["supersedes"]  # what came before is no evidence
    samples = [content["sample"], *(gate["sample"] for gate in content["gates"])]
    for part in (content["evidence"], *content["gates"], *filter(None, samples)):
        for name in _UNTIMED:
            part.pop(name, None)
    text = json.dumps([body, content], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return str(uuid.uuid5(NAMESPACE, text))
