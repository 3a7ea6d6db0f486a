"""A world whose traces name workflows: the join, the reader that completes traces, and a cluster's twin."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson

from agents.completing import Completing
from agents.live.balance import Balance
from evalcore.remediation.objects import Kinds, Object, Why
from evalcore.remediation.sealing import TRACES, Seals, TraceForms
from evalcore.remediation.workflow import Workflow
from schemas.outcomes import Kind
from streams.cluster.port import Unread
from streams.cluster.twin import Twin
from streams.cluster.watching import Proposals
from streams.cluster.workflows import ClusterWorkflows
from tests.unit.agents.builders import MINUTE, NOW, SECOND, Rec, trace
from tests.unit.agents.join.world import World
from tests.unit.agents.live.live_rig import MemoryFigures

VERTICAL, NAMESPACE = "remediation", "shop"
KEY = "k" * 20
SEALS = Seals.of(TRACES, KEY)
FORMS = TraceForms(SEALS, {VERTICAL: frozenset({NAMESPACE})})
TEXTS = {
    "input": {"messages": [{"role": "user", "content": "fix the shop"}]},
    "output": {"messages": [{"role": "assistant", "content": "# Checks\nall is well"}]},
}


def named(rid: str = "r", at: int = NOW, *, proposal: Any = None, **more: Any) -> dict[str, Any]:
    """A trace that names the workflow of the same name in the vertical's namespace."""
    event = trace(rid, at, vertical=VERTICAL, **more)
    event["metadata"]["agent_version"] = "v1"
    return event | TEXTS | {"proposal": {"namespace": NAMESPACE, "name": rid} if proposal is None else proposal}


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def proposal(name: str = "r", *conditions: str, at: int = NOW, ended: int = NOW + 5 * MINUTE) -> dict[str, Any]:
    """A Proposal of a fix and its check; `conditions` such as `Verified=True`. It has one result of its analysis."""
    made = [one.partition("=") for one in conditions]
    return {
        "apiVersion": "agentic.openshift.io/v1alpha1",
        "kind": "Proposal",
        "metadata": {"namespace": NAMESPACE, "name": name, "uid": f"uid-{name}", "creationTimestamp": iso(at)},
        "spec": {"request": "the shop runs out of memory", "analysis": {}, "execution": {}, "verification": {}},
        "status": {
            "conditions": [
                {"type": kind, "status": status, "reason": "x", "lastTransitionTime": iso(ended), "message": "so it is"}
                for kind, _, status in made
            ],
            "steps": {"analysis": {"results": [{"name": f"{name}-analysis"}]}},
        },
    }


def analysis(name: str = "r") -> dict[str, Any]:
    return {
        "kind": "AnalysisResult",
        "metadata": {"namespace": NAMESPACE, "name": f"{name}-analysis"},
        "status": {"options": [{"title": "raise the limit", "diagnosis": {"summary": "the limit is too low"}}]},
    }


class Cluster(Twin):
    """A twin that may be away. `asked`: the requests of objects."""

    def __init__(self, *objects: Object) -> None:
        super().__init__(objects)
        self.away: Why | None = None
        self.asked: list[str] = []

    async def get(self, kind: str, namespace: str, name: str) -> Object | Unread:
        self.asked.append(f"{kind}/{name}")
        return Unread(self.away) if self.away is not None else await super().get(kind, namespace, name)


class OpikTwin:
    def __init__(self) -> None:
        self.traces: dict[str, dict[str, Any]] = {}
        self.updates = 0

    async def get(self, trace_id: str) -> Mapping[str, Any] | None:
        return copy.deepcopy(self.traces.get(trace_id))

    async def update(self, trace_id: str, project: str, changes: Mapping[str, Any]) -> None:
        self.updates += 1
        self.traces[trace_id] |= changes


class Rig:
    """`look` is one look of the reader at all records that wait; `join` lets the join take what came."""

    def __init__(self, *objects: Object, forms: TraceForms = FORMS) -> None:
        self.world = World()
        self.world.policy = replace(self.world.policy, forms=forms)
        self.cluster, self.opik = Cluster(*objects), OpikTwin()
        self.proposals = Proposals(self.cluster, Kinds(), {NAMESPACE})
        self.figures, self.observed = MemoryFigures(), list[Workflow]()
        self.waiting: list[Any] = []
        self.published: list[dict[str, Any]] = []
        self.new_process()

    def new_process(self) -> None:
        """As after a kill: only what the stores hold is known."""

        async def publish(key: bytes | None, value: bytes) -> None:
            self.published.append(orjson.loads(value))
            self.world.send(Kind.TRACE, value)

        self.balance = Balance(self.figures)
        self.completing = Completing(
            self.world.ports, self.world.policy, Kinds(), ClusterWorkflows(self.cluster, Kinds(), self.proposals),
            self.opik, publish, self.balance, self.observed.append,
        )  # fmt: skip

    async def come(self, *events: Any) -> list[Rec]:
        sent = self.world.send(Kind.TRACE, *events)
        self.waiting += sent
        await self.join()
        return sent

    async def join(self) -> None:
        await self.world.run(Kind.TRACE)

    async def look(self, after: int = SECOND) -> list[dict[str, Any]]:
        """Return what is published in this look."""
        self.world.wait(after)
        watch, before = asyncio.create_task(self.proposals.run()), len(self.published)
        try:
            for _ in range(5):
                await asyncio.sleep(0)
            self.waiting = list(await self.completing.traces(self.waiting))
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
        return self.published[before:]

    def text(self, event: Mapping[str, Any]) -> str:
        found: str = event["output"]["messages"][-1]["content"][-1]["text"]
        return found
