"""The way an agent came to its answer, read from a trace in the contracts' form. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

NUMBERS: Final = ("input_tokens", "output_tokens", "cost_usd")
"""What a model's call uses."""
CACHED: Final = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Input tokens that Anthropic's own count leaves out of `input_tokens`; those of others are part of it."""
TRANSFER: Final = re.compile(r"(?:transfer|hand_?off)[_ ](?:back[_ ])?to[_ ](.+)", re.IGNORECASE)
"""The name of a tool, or of a step, by which another agent takes over."""


@dataclass(frozen=True)
class Trajectory:
    """What a trace says; None is unknown, which is neither zero nor empty.

    `tool_calls` are `{name, arguments?, result?, error?}` in the model's order, without handoffs; a failed call and its
    retry are two. `requested_calls` are those that the model asked for and that were not executed. `usage` has
    `input_tokens`, `output_tokens`, `total_tokens`, `cost_usd`, each only where all calls say it. `latency_ms` is in
    milliseconds. `unreadable` says by field what is wrong with it; such a field is unknown.
    """

    output: Any = None
    tool_calls: Sequence[Mapping[str, Any]] | None = None
    llm_calls: Sequence[Mapping[str, Any]] | None = None
    handoffs: Sequence[str] | None = None
    usage: Mapping[str, Any] | None = None
    retrieval: Sequence[Any] | None = None
    latency_ms: float | None = None
    requested_calls: Sequence[Mapping[str, Any]] | None = None
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def tools(self) -> list[str] | None:
        """Names of the tools called, each time that it was."""
        return None if self.tool_calls is None else [str(call["name"]) for call in self.tool_calls]

    def called(self, tool: str) -> bool | None:
        """Says whether a tool was called, also one that is a transfer to an agent; None is unknown. Case and separators
        do not count: a tool that is forbidden stays so under another spelling."""
        agent = next_agent(tool)
        if agent is not None and any(same_agent(agent, one) for one in self.handoffs or ()):
            return True
        return None if self._plain_tools is None else plain_name(tool) in self._plain_tools

    @cached_property
    def _plain_tools(self) -> frozenset[str] | None:
        return None if self.tools is None else frozenset(map(plain_name, set(self.tools)))


def trajectory_of(answer: Mapping[str, Any], latency_ms: float | None = None) -> Trajectory:
    """Returns the trajectory of an answer with the fields of `evalcore.gates.golden.OF_ANSWERS`.

    Where the answer does not say its handoffs apart, transfers among its tool calls are those. An answer without
    `usage` uses what all its model calls say; a sum that is below its parts is not believed.
    """
    unreadable: dict[str, str] = {}
    if dropped := answer.get("spans_dropped"):
        # What lies in these may be any call: a part of the path would be taken for the whole.
        why = f"spans: must be whole, got all but {dropped}; send fewer or smaller ones"
        unreadable |= dict.fromkeys(("tool_calls", "handoffs", "llm_calls"), why)

    def told(name: str) -> list[Any] | None:
        if (value := answer.get(name)) is None or dropped:
            return None
        if why := _not_listed(value, text=name == "handoffs", named=name != "llm_calls"):
            unreadable[name] = f"{name}{why}"
            return None
        return list(value)

    calls, handoffs, models = told("tool_calls"), told("handoffs"), told("llm_calls")
    if calls is not None and handoffs is None and "handoffs" not in unreadable:
        transfers = [agent for call in calls if (agent := next_agent(call["name"])) is not None]
        calls = [call for call in calls if next_agent(call["name"]) is None]
        # Null is unknown, as of spans whose SDK may record no handoff.
        handoffs = transfers if transfers or "handoffs" not in answer else None
    given = answer.get("usage")
    if given is not None and not isinstance(given, Mapping):
        unreadable["usage"] = f"usage: must be an object, got {type(given).__name__}"
    retrieval = answer.get("retrieval")
    return Trajectory(
        output=answer.get("output"),
        tool_calls=calls,
        llm_calls=models,
        handoffs=handoffs,
        usage=_usage(given if isinstance(given, Mapping) else {}, models or (), answer.get("cost_usd")) or None,
        retrieval=retrieval if isinstance(retrieval, list) else None if retrieval is None else [retrieval],
        latency_ms=latency_ms,
        requested_calls=told("requested_calls"),
        unreadable=unreadable,
    )


def next_agent(tool: str) -> str | None:
    """Returns the agent that takes over by this tool; None where the tool is no transfer."""
    found = TRANSFER.fullmatch(tool)
    return found[1] if found is not None else None


def same_agent(one: str, other: str) -> bool:
    """Says whether both names are one agent's: `BillingAgent`, `billing_agent` and `Billing agent` are."""
    return plain_name(one) == plain_name(other)


def plain_name(name: str) -> str:
    """Returns a name without case and separators."""
    return re.sub(r"[\W_]+", "", name.casefold())


def number(value: Any) -> float | None:
    """Returns a count or an amount; None for what is none."""
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if known and math.isfinite(value) and value >= 0 else None


def sums(calls: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Returns what models used in all, each number only where all calls say it: a part's sum would be taken for the
    whole."""
    found = {name: [_used(call, name) for call in calls] for name in NUMBERS}
    added = {name: sum(one for one in values if one is not None) for name, values in found.items()}
    usage = {name: added[name] for name, values in found.items() if values and None not in values}
    if {"input_tokens", "output_tokens"} <= usage.keys():
        usage["total_tokens"] = usage["input_tokens"] + usage["output_tokens"]
    return usage


def _usage(given: Mapping[str, Any], models: Sequence[Mapping[str, Any]], cost: Any) -> dict[str, float]:
    stated = {name: _used(given, name) for name in (*NUMBERS, "total_tokens")}
    if number(cost) is not None:
        stated["cost_usd"] = number(cost)
    usage = sums(models)
    for name, value in stated.items():
        if value is not None:
            usage[name] = max(value, usage.get(name, 0))
    if {"input_tokens", "output_tokens"} <= usage.keys():
        usage["total_tokens"] = max(usage["input_tokens"] + usage["output_tokens"], usage.get("total_tokens", 0))
    return usage


def _used(said: Mapping[str, Any], name: str) -> float | None:
    value = number(said.get(name))
    cached = [number(said.get(one)) or 0 for one in CACHED] if name == "input_tokens" else []
    return None if value is None else value + sum(cached)


def _not_listed(value: Any, *, text: bool, named: bool) -> str:
    """What is wrong with a list of texts, or of objects with a name; empty where nothing is."""
    if not isinstance(value, (list, tuple)):
        return f": must be a list, got {type(value).__name__}"
    for place, one in enumerate(value):
        if text and not isinstance(one, str):
            return f".{place}: must be a text, got {type(one).__name__}"
        if not text and not isinstance(one, Mapping):
            return f".{place}: must be an object, got {type(one).__name__}"
        if not text and named and not (isinstance(one.get("name"), str) and one["name"]):
            return f".{place}.name: must be a text, got {type(one.get('name')).__name__}"
    return ""
