"""The verdict record out of its gates (contracts §3). Pure.

Its id is a UUIDv5 of the request and of all that decided: the same evidence gives the same id, whoever decides and
when.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from evalcore.gates.requests import InvalidRequest, RampRequest, of_step
from schemas.verdicts import Action, Code, EvidenceFacts, GateVerdict, Reason, SampleFacts, Verdict, VerdictLevel

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "verdicts.rampgate")
_VERDICT = TypeAdapter(Verdict)
_UNTIMED = ("decided_at", "duration_seconds", "frozen_at")


@dataclass(frozen=True)
class Moment:
    """When it was decided (ISO 8601) and how long that took."""

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
) -> Verdict:
    """Of a request whose gates have decided, or of one whose step fires none."""
    step = asked.step
    made = of_step(step.from_percent, gates)
    deciding = made.deciding
    return _named(
        asked.body,
        Verdict(
            request_id=step.request_id,
            verdict_id="",
            experiment_id=step.experiment_id,
            agent_id=step.agent_id,
            agent_version=step.agent_version,
            vertical=step.vertical,
            from_percent=step.from_percent,
            to_percent=step.to_percent,
            milestone=deciding.milestone if deciding else None,
            verdict=made.verdict,
            gates=list(gates),
            failing_judges=list(deciding.failing_judges) if deciding else [],
            per_judge_scores=dict(deciding.per_judge_scores) if deciding else {},
            action=made.action,
            halt_at_percent=made.halt_at_percent,
            reasons=list(made.reasons),
            supersedes=None,
            sample=sample,
            evidence=EvidenceFacts(config_hash, coverage, moment.decided_at, moment.duration_seconds),
        ),
    )


def refused(
    request: RampRequest | InvalidRequest,
    reasons: Sequence[Reason],
    moment: Moment,
    *,
    config_hash: str | None = None,
) -> Verdict:
    """A `fail` without a gate's numbers: an invalid request, or a deadline that has passed."""
    percents: tuple[float | None, float | None]
    if isinstance(request, RampRequest):
        step = request.step
        fired = request.milestones
        ids: Mapping[str, str | None] = {
            "experiment_id": step.experiment_id,
            "agent_id": step.agent_id,
            "agent_version": step.agent_version,
            "vertical": step.vertical,
        }
        percents = (step.from_percent, step.to_percent)
        milestone = fired[0] if fired else None
        halt = step.from_percent  # where the rollout stands; at pre_ramp that is 0
    else:
        ids, percents, milestone = request.known, (request.stands, request.wanted), None
        halt = request.stands or 0.0  # nowhere, if nobody can tell where it stands
    return _named(
        request.body,
        Verdict(
            request_id=request.request_id,
            verdict_id="",
            experiment_id=ids.get("experiment_id"),
            agent_id=ids.get("agent_id"),
            agent_version=ids.get("agent_version"),
            vertical=ids.get("vertical"),
            from_percent=percents[0],
            to_percent=percents[1],
            milestone=milestone,
            verdict=VerdictLevel.FAIL,
            gates=[],
            failing_judges=[],
            per_judge_scores={},
            action=Action.HALT,
            halt_at_percent=halt,
            reasons=list(reasons),
            supersedes=None,
            sample=None,
            evidence=EvidenceFacts(config_hash, None, moment.decided_at, moment.duration_seconds),
        ),
    )


def invalid(request: InvalidRequest, moment: Moment) -> Verdict:
    return refused(request, [Reason(Code.INVALID_REQUEST, why) for why in request.why], moment)


def as_json(verdict: Verdict) -> dict[str, Any]:
    """As the record's value has it: enums as their words, tuples as lists."""
    whole: dict[str, Any] = json.loads(json.dumps(_VERDICT.dump_python(verdict), allow_nan=False))
    return whole


def from_json(data: Mapping[str, Any]) -> Verdict:
    """Back from a record, so that a stored verdict can be published again as it is. Unknown fields are left out."""
    return _VERDICT.validate_python(dict(data))


def _named(body: str, verdict: Verdict) -> Verdict:
    content = _VERDICT.dump_python(verdict)
    del content["supersedes"]  # what came before is no evidence
    samples = [content["sample"], *(gate["sample"] for gate in content["gates"])]
    for part in (content["evidence"], *filter(None, samples)):
        for name in _UNTIMED:
            part.pop(name, None)
    text = json.dumps([body, content], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return replace(verdict, verdict_id=str(uuid.uuid5(NAMESPACE, text)))
