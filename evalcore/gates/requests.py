"""A ramp-step request out of its bytes, or what can be answered to it (contracts §1, §3). Pure.

Every request gets one verdict, also a malformed one, as long as its id can be read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from evalcore.gates.steps import milestones
from evalcore.registry import Registry, UnknownJudge
from schemas.judges import Milestone
from schemas.ramps import RampStep

LONGEST_ID = 512


@dataclass(frozen=True)
class Unreadable:
    """Nobody can be answered: a dead letter."""

    why: str


@dataclass(frozen=True)
class Invalid:
    """A request that asks for nothing that can be decided; `known` are the ids that could be read of it."""

    request_id: str
    known: Mapping[str, str]
    why: tuple[str, ...]
    body: str


@dataclass(frozen=True)
class Asked:
    """A sound request. `body` is the hash of what it says, by which a repeated request is told from another one under
    the same id."""

    step: RampStep
    body: str

    @property
    def request_id(self) -> str:
        return self.step.request_id

    @property
    def milestones(self) -> tuple[Milestone, ...]:
        return milestones(self.step.from_percent, self.step.to_percent)


Request = Asked | Invalid | Unreadable
_IDS = ("experiment_id", "agent_id", "agent_version", "vertical")


def read(raw: bytes | None) -> Request:
    """Never raises."""
    if raw is None:
        return Unreadable("the value is null; a ramp-step request was expected")
    try:
        data = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"not JSON: {error}")
    if not isinstance(data, dict):
        return Unreadable("not an object; a ramp-step request was expected")
    request_id = data.get("request_id")
    if not isinstance(request_id, str) or not 0 < len(request_id) <= LONGEST_ID:
        return Unreadable("request_id: a text of 1 to 512 characters is required")
    body = body_hash(data)
    try:
        step = RampStep.model_validate(data)
    except ValidationError as error:
        known = {name: data[name] for name in _IDS if isinstance(data.get(name), str) and len(data[name]) <= LONGEST_ID}
        return Invalid(request_id, known, _told(error), body)
    return Asked(step, body)


def body_hash(data: Mapping[str, Any]) -> str:
    """Of content: the order of keys and the spelling of numbers make no difference."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def judges_of(asked: Asked, milestone: Milestone, registry: Registry) -> tuple[list[str], list[str]]:
    """The judges of a gate, the safety judges among them, and what is wrong with the request's list."""
    listed = asked.step.eval_gates.pre_ramp if milestone is Milestone.PRE_RAMP else asked.step.eval_gates.pre_full
    return named(listed, f"eval_gates.{milestone}", registry, asked.step.vertical)


def named(listed: Sequence[str], field: str, registry: Registry, vertical: str | None) -> tuple[list[str], list[str]]:
    """Names in the registry's spelling, each once, the inherited safety judges behind them; and what is wrong in the
    list. `judge.dimension` is a judge of its own."""
    wrong = [] if listed else [f"{field}: the list is empty; name the judges that decide"]
    names: dict[str, None] = {}
    for place, name in enumerate(listed):
        try:
            names[registry.spelled(name)] = None
        except UnknownJudge as error:
            wrong.append(f"{field}[{place}]: {error}")
    names |= dict.fromkeys(judge.id for judge in registry.all(vertical) if judge.safety)
    return list(names), wrong


def _told(error: ValidationError) -> tuple[str, ...]:
    found = []
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        found.append(f"{place}: {message}" if place else message)
    return tuple(dict.fromkeys(found))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
