"""The way an agent came to its answer, read from a trace in the contracts' form. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Trajectory:
    """What a trace says; None is unknown, which is neither zero nor empty.

    `tool_calls` are `{name, arguments?, result?, error?}` in the model's order, without handoffs. `usage` has
    `input_tokens`, `output_tokens`, `total_tokens`, `cost_usd`, each only where all calls say it.
    """

    output: Any = None
    tool_calls: Sequence[Mapping[str, Any]] | None = None
    llm_calls: Sequence[Mapping[str, Any]] | None = None
    handoffs: Sequence[str] | None = None
    usage: Mapping[str, Any] | None = None
    retrieval: Sequence[Any] | None = None
    latency_ms: float | None = None

    @property
    def tools(self) -> list[str] | None:
        """Names of the tools called, each time that it was."""
        return None if self.tool_calls is None else [str(call["name"]) for call in self.tool_calls]


def trajectory_of(answer: Mapping[str, Any], latency_ms: float | None = None) -> Trajectory:
    """Returns the trajectory of an answer with the fields of `evalcore.gates.golden.OF_ANSWERS`."""
    known = ("output", "tool_calls", "llm_calls", "handoffs", "usage", "retrieval")
    return Trajectory(**{name: answer[name] for name in known if name in answer}, latency_ms=latency_ms)
