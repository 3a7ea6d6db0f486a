"""Turns put into whatever holds traces: a local Opik, or its twin in memory."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agents.codec import TraceFacts
from agents.join.versions import Came
from streams.opik.traces import OpikTraces
from tests.contract.opik.scripted_opik import ScriptedOpik, trace_id_at
from tests.memory_ports import MemoryTraces

MINUTE, DAY = 60_000, 86_400_000


@dataclass
class Rig:
    traces: OpikTraces | MemoryTraces
    opik: ScriptedOpik | None

    async def add(self, *turns: tuple[str, int], project: str = "a", **metadata: Any) -> dict[str, str]:
        """Completed traces of (response id, start in ms), one second long; returns response id -> trace id."""
        ids = {rid: trace_id_at(at) for rid, at in turns}
        if self.opik is None:
            assert isinstance(self.traces, MemoryTraces)
            for rid, at in turns:
                self.traces.known[rid] = facts(rid, ids[rid], project, at, **metadata)
            return ids
        at_opik = []
        for rid, at in turns:
            span = {"start_time": iso(at), "end_time": iso(at + 1_000)}
            trace = {"id": ids[rid], "project_name": project, "name": "turn", "input": {"q": rid}, **span}
            at_opik.append(trace | {"metadata": {"response_id": rid, **metadata}})
        await self.opik.add_traces(*at_opik)
        return ids

    async def judge(self, rid: str, trace_id: str, project: str = "a") -> None:
        if self.opik is None:
            assert isinstance(self.traces, MemoryTraces)
            self.traces.known[rid].judged = True
        else:
            await self.opik.add_score(trace_id, "helpfulness", 4, project)

    async def score(self, trace_id: str, project: str = "a", **scores: float) -> None:
        for name, value in scores.items():
            if self.opik is None:
                assert isinstance(self.traces, MemoryTraces)
                self.traces.scores.held[trace_id, name] = value
            else:
                await self.opik.add_score(trace_id, name, value, project)


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()


def now() -> int:
    return time.time_ns() // 1_000_000


def facts(rid: str, trace_id: str, project: str, at: int, **metadata: Any) -> TraceFacts:
    words = (str(metadata.get(name, "")) for name in ("vertical", "sub_agent", "category"))
    of_opik = {"production": True, "came": Came.NOT_COME}
    return TraceFacts(rid, uuid.UUID(trace_id).bytes, project, *words, at, at + 1_000, False, **of_opik)
