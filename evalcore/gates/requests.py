"""Reads a ramp-step request, names its gates, and combines their verdicts to the step's. Pure.

Every request whose id can be read gets one verdict, also a malformed one (PC5 FR-2, §5.5; contracts §1, §3).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeGuard

from pydantic import ValidationError

from evalcore.gates.decision import combined
from evalcore.gates.history import Stand
from evalcore.registry.registry import Registry, UnknownJudge
from schemas.judges import Milestone
from schemas.ramp_steps import RampStep
from schemas.verdicts import Action, Code, GateVerdict, Reason, VerdictLevel

FULL = 100.0
LONGEST_ID = 512
LONGEST_NUMBER = 300
"""Digits of a whole number; a longer one is read as infinite."""
MOST_REASONS = 20
"""Reasons in an answer; others are only counted, since a verdict has to fit a record."""
_IDS = ("experiment_id", "agent_id", "agent_version")


def milestones(from_percent: float, to_percent: float) -> tuple[Milestone, ...]:
    """Returns the gates of a step: `pre_ramp` on the first step above zero, `pre_full` on the step to 100; both, in
    that order, on a jump from 0 to 100; none on the steps between, on a step down and on one that goes nowhere."""
    out = []
    if from_percent <= 0 < to_percent:
        out.append(Milestone.PRE_RAMP)
    if from_percent < FULL <= to_percent:
        out.append(Milestone.PRE_FULL)
    return tuple(out)


def preceding(from_percent: float, to_percent: float) -> tuple[Milestone, ...]:
    """Returns the gates before a step: it asks for a pass of the first where it goes up, and a standing failure of any
    halts it. A gate that the step fires is none of them, since it runs again. None from 0 to 0, and for a step down."""
    if to_percent < from_percent or to_percent <= 0:
        return ()
    if from_percent <= 0:
        return (Milestone.PRE_MERGE,)
    return (Milestone.PRE_RAMP,) if to_percent >= FULL else (Milestone.PRE_RAMP, Milestone.PRE_FULL)


_AGAIN = {
    Milestone.PRE_MERGE: "`gate run --publish` runs it again",
    Milestone.PRE_RAMP: "the step from 0 runs it again",
    Milestone.PRE_FULL: "the step to 100 runs it again",
}


@dataclass(frozen=True)
class GateBefore:
    """What is wrong with how an agent definition stands with the gates before a step, and how bad that is."""

    level: VerdictLevel
    reason: Reason


def gate_before(
    step: RampStep, stands: Mapping[Milestone, Stand], enforcement: Literal["off", "warn", "block"]
) -> GateBefore | None:
    """Returns what is wrong with a step by how its definition stands with each gate; None where nothing is, or the
    manifest does not ask (PC5 §5.5, "Per-Agent-Definition lifecycle threads"). A standing failure always fails."""
    before = preceding(step.from_percent, step.to_percent)
    if enforcement == "off" or not before:
        return None
    which = f"version {step.agent_version!r:.80} of {step.agent_id!r:.80}"
    for failed in before:
        if stands[failed].fails:
            message = (
                f"{which} failed {failed} at {stands[failed].failed} and has not passed it since; {_AGAIN[failed]}"
            )
            return GateBefore(VerdictLevel.FAIL, Reason(Code.GATE_FAILED, message))
    if stands[before[0]].passes or step.to_percent <= step.from_percent:
        return None
    message = f"the step asks for a standing pass of {before[0]}, and {which} has no verdict of it"
    level = VerdictLevel.FAIL if enforcement == "block" else VerdictLevel.WARN
    return GateBefore(level, Reason(Code.GATE_MISSING, message))


@dataclass(frozen=True)
class Step:
    """A step's verdict. `deciding` is the gate that decided, None where no gate fired."""

    verdict: VerdictLevel
    action: Action
    deciding: GateVerdict | None
    halt_at_percent: float | None
    reasons: tuple[Reason, ...]


def of_step(halt_at: float, gates: Sequence[GateVerdict], missing: Reason | None = None) -> Step:
    """Combines the gates' verdicts. The worst gate decides, of equals the first. That a gate before is `missing` warns:
    it is said unless the gates came to something worse, and what they say of the agent stays."""
    made = _of_gates(halt_at, gates)
    if missing is None or made.verdict is VerdictLevel.FAIL:
        return made
    reasons = (*made.reasons, missing) if made.verdict is VerdictLevel.WARN else (missing, *made.reasons)
    return replace(made, verdict=VerdictLevel.WARN, reasons=reasons)


def _of_gates(halt_at: float, gates: Sequence[GateVerdict]) -> Step:
    if not gates:
        return no_gate("no gate fires between the first step and the one to 100 %")
    level = combined([gate.verdict for gate in gates])
    deciding = next(gate for gate in gates if gate.verdict is level)
    failed = level is VerdictLevel.FAIL
    action = Action.HALT if failed else Action.PROCEED
    return Step(level, action, deciding, halt_at if failed else None, tuple(deciding.reasons))


def no_gate(why: str) -> Step:
    """Returns the pass of a step that fires no gate."""
    return Step(VerdictLevel.PASS, Action.PROCEED, None, None, (Reason(Code.NO_GATE_AT_STEP, why),))


@dataclass(frozen=True)
class UnreadableRequest:
    """A record without a readable request id. No verdict can answer it, so it becomes a dead letter."""

    why: str


@dataclass(frozen=True)
class InvalidRequest:
    """A request that can't be decided. `known` are the ids that could be read, `stands` the rollout's current
    percentage as the request states it, `wanted` the percentage it asks for."""

    request_id: str
    known: Mapping[str, str]
    why: tuple[str, ...]
    body: str
    stands: float | None = None
    wanted: float | None = None

    @property
    def goes_down(self) -> bool:
        """Tells whether it is a step down, of which no more than its ids and percentages has to be read."""
        if self.stands is None or self.wanted is None:
            return False
        return self.wanted < self.stands and all(name in self.known for name in _IDS)


@dataclass(frozen=True)
class RampRequest:
    """A valid request. `body` is the hash of its content: it tells a repeated request from another one under the same
    id. `sent_by` is when its record was on the topic at the latest, whatever its sender's clock says."""

    step: RampStep
    body: str
    sent_by: datetime | None = None

    @property
    def request_id(self) -> str:
        return self.step.request_id

    @property
    def known(self) -> Mapping[str, str]:
        return {name: value for name in (*_IDS, "vertical") if (value := getattr(self.step, name)) is not None}

    @property
    def stands(self) -> float:
        return self.step.from_percent

    @property
    def wanted(self) -> float:
        return self.step.to_percent

    @property
    def goes_down(self) -> bool:
        return self.wanted < self.stands

    @property
    def milestones(self) -> tuple[Milestone, ...]:
        return milestones(self.stands, self.wanted)

    @property
    def stated_at(self) -> datetime:
        """When it says that it was requested; a time without a zone is UTC."""
        stated = self.step.requested_at
        return stated if stated.tzinfo else stated.replace(tzinfo=UTC)

    @property
    def requested_at(self) -> datetime:
        """When it was requested: no time ahead of `sent_by` can be true."""
        return min(self.stated_at, self.sent_by or self.stated_at)


def halt_at(request: RampRequest | InvalidRequest, pre_ramp: Stand) -> float:
    """Returns the percentage to hold after a halt: the rollout's current one where a pass of `pre_ramp` stands, else
    0."""
    return (request.stands or 0.0) if pre_ramp.passes else 0.0


Request = RampRequest | InvalidRequest | UnreadableRequest


def read(raw: bytes | None) -> Request:
    """Reads a record's value. Never raises."""
    if raw is None:
        return UnreadableRequest("the value is null; a ramp-step request was expected")
    try:
        data = json.loads(raw, parse_int=_whole, parse_float=_number, object_pairs_hook=_Object)
        if not isinstance(data, _Object):
            return UnreadableRequest("not an object; a ramp-step request was expected")
        body = body_hash(data)
    except (ValueError, RecursionError) as error:
        return UnreadableRequest(f"not JSON: {error}")
    request_id = data.get("request_id")
    if type(request_id) is int:
        request_id = str(request_id)
    if not _usable(request_id) or "request_id" in data.twice:
        return UnreadableRequest("request_id: one text of 1 to 512 characters is required")
    wrong = [f"{name}: stands twice" for name in _twice(data)]
    try:
        step = RampStep.model_validate(data)
    except ValidationError as error:
        wrong += _problems(error)
    if wrong:
        names = (name for name in (*_IDS, "vertical") if name not in data.twice)
        known = {name: data[name] for name in names if _usable(data.get(name))}
        rest = [f"{len(wrong) - MOST_REASONS} more fields are wrong"] if len(wrong) > MOST_REASONS else []
        percents = _percent(data, "from_percent"), _percent(data, "to_percent")
        return InvalidRequest(request_id, known, (*wrong[:MOST_REASONS], *rest), body, *percents)
    return RampRequest(step, body)


def _percent(data: _Object, name: str) -> float | None:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or name in data.twice:
        return None
    return float(value) if 0 <= value <= FULL else None


def body_hash(data: Mapping[str, Any]) -> str:
    """Returns the hash of the content; the order of keys and, once read, the spelling of numbers make no difference."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def judges_of(asked: RampRequest, milestone: Milestone, registry: Registry) -> tuple[list[str], list[str]]:
    """Returns the judges of a gate, the safety judges among them, and what is wrong with the request's list."""
    listed = asked.step.eval_gates.pre_ramp if milestone is Milestone.PRE_RAMP else asked.step.eval_gates.pre_full
    return named(listed, f"eval_gates.{milestone}", registry, asked.step.vertical)


def named(
    listed: Iterable[object], field: str, registry: Registry, vertical: str | None
) -> tuple[list[str], list[str]]:
    """Returns the listed names in the registry's spelling, each once, then the inherited safety judges; and what is
    wrong with the list.

    `judge.dimension` is a judge of its own; a composite stands for its members.
    """
    listed = list(listed)
    wrong = [] if listed else [f"{field}: the list is empty; name the judges that decide"]
    names: dict[str, None] = {}
    for place, name in enumerate(listed):
        if not isinstance(name, str):
            wrong.append(f"{field}[{place}]: a judge's id is a text")
            continue
        try:
            names |= dict.fromkeys(map(registry.spelled, registry.members(name)))
        except UnknownJudge as error:
            wrong.append(f"{field}[{place}]: {error}")
    names |= dict.fromkeys(judge.id for judge in registry.all(vertical) if judge.safety)
    return list(names), wrong


def _problems(error: ValidationError) -> list[str]:
    """Returns pydantic's errors as sentences, each once."""
    sentences = []
    for problem in error.errors(include_url=False, include_context=False):
        place = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        if isinstance(problem["input"], (int, float, bool)):
            message += f", not {problem['input']!r:.40}"
        sentences.append(f"{place}: {message}" if place else message)
    return list(dict.fromkeys(sentences))


class _Object(dict[str, Any]):
    """A JSON object with the names that it has `twice`; which of their values is meant can't be known."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = Counter(name for name, _ in pairs) if len(self) < len(pairs) else Counter[str]()
        self.twice = {name for name, times in names.items() if times > 1}


def _twice(data: _Object) -> list[str]:
    """Returns the fields that the object has twice, among those we read."""
    gates = data.get("eval_gates")
    inner = [f"eval_gates.{name}" for name in gates.twice] if isinstance(gates, _Object) else []
    return sorted([*(name for name in data.twice if name in RampStep.model_fields), *inner])


def _usable(value: Any) -> TypeGuard[str]:
    """Tells whether the value is a text that an answer can carry; half a surrogate pair has no bytes."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_ID and not any("\ud800" <= c <= "\udfff" for c in value)


def _whole(digits: str) -> float:
    return int(digits) if len(digits) <= LONGEST_NUMBER else float(digits)


def _number(text: str) -> float:
    """Reads 5.0 as 5."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value
