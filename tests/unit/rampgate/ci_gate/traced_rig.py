"""A rollout's gate on one machine: the small registry and a file of traces of one agent's version."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

from tests.unit.rampgate.ci_gate.gate_rig import MANIFEST, Rig, jsonl

TRACES = 30
GATES = "gates: {minimum_sample: {pre_ramp: 20, pre_full: 25}, coverage_floor: 0.2}"
FEW = f"{{{MANIFEST[1:-1]}, {GATES}}}"
SPACE = UUID(int=0)


class Traced(Rig):
    """`traces` is a file of TRACES good ones; half of them are general_qa's, half shop_returns'."""

    def __init__(self, folder: Path, model: str) -> None:
        super().__init__(folder, model)
        self.root = self.registry({"evaluation_manifest.yaml": FEW})
        self.traces = folder / "traces.jsonl"
        self.written()

    def written(self, quality: object = 1, count: int = TRACES, **changes: Any) -> None:
        jsonl(self.traces, *({**trace(number, quality), **changes} for number in range(count)))


def trace(number: int, quality: object = 1, **metadata: Any) -> dict[str, Any]:
    category = ("general_qa", "shop_returns")[number % 2]
    return {
        "event_id": f"e{number}",
        "trace_id": str(uuid5(SPACE, str(number))),
        "input": {"messages": [{"content": f"how do I do {number}?"}]},
        "output": {"messages": [{"content": f"so {number} #quality:{quality}"}]},
        "metadata": {"agent_id": "a", "agent_version": "v", "category": category, **metadata},
    }
