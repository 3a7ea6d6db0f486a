"""Puts together what a model asked for and what was executed: tool calls, handoffs, calls never executed. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from evalcore.nesting import DEEPEST, too_deep
from evalcore.trajectory.record import next_agent, plain_name

BLOCKS: Final = frozenset({"function_call", "tool_use", "tool_call"})
"""Types of the parts of a model's answer that ask for a call."""
GIVEN: Final = ("arguments", "args", "input")


@dataclass(frozen=True)
class Requested:
    """A call that a model asked for, in its answer number `turn`, or at that time."""

    name: str
    turn: float
    id: str | None = None
    arguments: Any = None

    def described(self) -> dict[str, Any]:
        return {"name": self.name} | ({"arguments": self.arguments} if self.arguments is not None else {})


@dataclass(frozen=True)
class Executed:
    """A call that was executed, at a time or after an answer; `said` has arguments, result and error where known."""

    name: str
    at: float
    id: str | None = None
    said: Mapping[str, Any] = field(default_factory=dict)


def calls_of(
    requested: Sequence[Requested], executed: Sequence[Executed], until: float = -math.inf
) -> dict[str, list[Any]]:
    """Returns `{tool_calls, handoffs, requested_calls}`: calls in the order in which the model asked for them; one that
    no request is known of stands where it began. A call that was executed twice is two, and a transfer that failed is
    no handoff.

    Where no transfer is seen to be executed, the first that an answer before `until` asks for is a handoff: some SDKs
    record none.
    """
    waiting = dict(enumerate(requested))
    placed: list[tuple[float, int, Executed]] = []
    met: dict[str, int] = {}
    for one in sorted(executed, key=lambda call: call.at):
        fitting = [place for place, call in waiting.items() if _is(call, one)]
        asked = next((place for place in fitting if requested[place].turn <= one.at), None)
        if asked is None:  # executed once more, or by a machine whose clock differs
            asked = met.get(one.id or "", next(iter(fitting), None))
        if asked is None:
            placed.append((one.at, len(requested), one))
            continue
        waiting.pop(asked, None)
        if one.id is not None:
            met[one.id] = asked
        wanted = requested[asked]
        said = ({"arguments": wanted.arguments} if wanted.arguments is not None else {}) | dict(one.said)
        placed.append((wanted.turn, asked, Executed(one.name, one.at, one.id, said)))
    made = [one for *_, one in sorted(placed, key=lambda entry: (entry[0], entry[1], entry[2].at))]
    transfers = [one for one in made if next_agent(one.name) is not None]
    if not transfers:
        first: dict[float, int] = {}
        for place, call in waiting.items():
            if next_agent(call.name) is not None and call.turn < until:
                first.setdefault(call.turn, place)
        transfers = [Executed(waiting.pop(place).name, turn) for turn, place in first.items()]
    failed = [one for one in transfers if one.said.get("error") is not None]
    return {
        "tool_calls": [{"name": one.name, **one.said} for one in made if next_agent(one.name) is None],
        "handoffs": [str(next_agent(one.name)) for one in transfers if one not in failed],
        "requested_calls": [
            *(call.described() for call in waiting.values()),
            *({"name": one.name, **one.said} for one in failed),
        ],
    }


def requests_in(answer: Any, turn: float, depth: int = 0) -> Iterator[Requested]:
    """Yields the calls that a model's answer asks for, in its order, whichever API it is of: chat completions,
    responses, Anthropic's, LangChain's or OpenTelemetry's messages."""
    if depth > DEEPEST:
        return
    if isinstance(answer, Mapping):
        if answer.get("tool_calls") or answer.get("invalid_tool_calls"):
            asked = [*(answer.get("tool_calls") or ()), *(answer.get("invalid_tool_calls") or ())]
            yield from (one for call in asked if (one := _request(call, turn)) is not None)
        elif answer.get("type") in BLOCKS:
            if (found := _request(answer, turn)) is not None:
                yield found
        else:
            for part in answer.values():
                yield from requests_in(part, turn, depth + 1)
    elif isinstance(answer, (list, tuple)):
        for part in answer:
            yield from requests_in(part, turn, depth + 1)


def results_in(prompt: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yields what calls returned, by their ids, as the messages to a model say it."""
    if depth > DEEPEST:
        return
    if isinstance(prompt, Mapping):
        found = prompt.get("tool_call_id") or prompt.get("call_id") or prompt.get("tool_use_id")
        if found is None and prompt.get("type") == "tool_call_response":
            found = prompt.get("id")
        said = next((prompt[name] for name in ("response", "result", "output", "content") if name in prompt), None)
        if found and said is not None:
            yield str(found), opened(said)
        else:
            for part in prompt.values():
                yield from results_in(part, depth + 1)
    elif isinstance(prompt, (list, tuple)):
        for part in prompt:
            yield from results_in(part, depth + 1)


def opened(value: Any) -> Any:
    """Returns what a text of JSON holds: structured values come so where an API or an exporter knows no other. What is
    nested too deep to be written again stays a text."""
    if not isinstance(value, str) or value[:1] not in "[{":
        return value
    try:
        found = orjson.loads(value)
    except orjson.JSONDecodeError:
        return value
    return value if value.count("[") + value.count("{") > DEEPEST and too_deep(found) else found


def _request(call: Any, turn: float) -> Requested | None:
    if not isinstance(call, Mapping):
        return None
    inner = call.get("function") or call.get("tool_call")
    if isinstance(inner, Mapping):
        return _request({"id": call.get("id"), **inner}, turn)
    if not isinstance(call.get("name"), str):
        return None
    arguments = next((opened(call[name]) for name in GIVEN if name in call), None)
    found = call.get("call_id") or call.get("id")
    return Requested(call["name"], turn, str(found) if found else None, arguments)


def _is(call: Requested, one: Executed) -> bool:
    """Whether this is the call that was asked for: by its id where both have one, else by name and arguments."""
    if call.id is not None and one.id is not None:
        return call.id == one.id
    given = one.said.get("arguments")
    return plain_name(call.name) == plain_name(one.name) and (
        None in (given, call.arguments) or given == call.arguments
    )
