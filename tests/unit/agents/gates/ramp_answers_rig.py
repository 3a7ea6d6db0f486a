"""From a request to its verdict, with the shipped registry and every port scripted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any

from agents.gates.ports import AskingGate, GatePorts, Item, Sample
from agents.ramp_steps import answer
from evalcore.gates.history import Line, Stand
from evalcore.gates.requests import InvalidRequest, RampRequest, read
from evalcore.gates.skips import GateSkip, Skips
from evalcore.registry.disk import read_tree
from evalcore.registry.registry import Judge, Registry, build
from evalcore.scoring.answers import Answer, Scored, Unscored
from evalcore.validation import checked
from schemas.judges import Milestone
from schemas.verdicts import Code, Composition, SampleFacts, Verdict

NOW = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)
REQUEST: dict[str, Any] = {
    "request_id": "r-1",
    "experiment_id": "e-1",
    "agent_id": "receipts-agent",
    "agent_version": "abc123",
    "vertical": "receipts",
    "from_percent": 0,
    "to_percent": 5,
    "eval_gates": {"pre_ramp": ["ux-quality"], "pre_full": ["ux_quality"]},
    "requested_at": "2026-11-21T12:00:00Z",
    "deadline_seconds": 600,
}
PASSED = Stand(passed="2026-11-20")
SAFETY = {"jailbreaking", "safety_restricted", "sensitive_topics"}


@cache
def registry() -> Registry:
    files, _ = checked(read_tree(Path("configs")), date(2026, 11, 21))
    return build(files)


@dataclass
class Scripted:
    """All ports at once. `scores`: judge id -> the value of all items; others get the top of their scale."""

    size: int = 400
    scores: dict[str, float] = field(default_factory=dict)
    down: bool = False
    rate: float | None = 0.4
    seconds: float = 0.0
    past: list[float] = field(default_factory=list)
    verticals: tuple[str, ...] = ()
    stands: Stand = PASSED
    held: list[GateSkip] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    before: list[Milestone] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def frozen(self, asked: RampRequest, milestone: Milestone, registry: Registry) -> Sample:
        whose = cycle([{"metadata": {"vertical": one}} for one in self.verticals] or [{}])
        items = [Item(f"t{number}", "online", next(whose)) for number in range(self.size)]
        facts = SampleFacts(
            scope="version",
            fingerprint="f" * 16,
            size=self.size,
            window_seconds=86_400,
            composition=Composition(production=self.size),
            frozen_at="2026-11-21",
            dataset_version="7",
        )
        return Sample(items, facts)

    async def score(
        self, gate: AskingGate, judges: Sequence[Judge], items: Sequence[Item], within: float | None = None
    ) -> dict[str, list[Answer]]:
        await asyncio.sleep(self.seconds)
        self.asked += [judge.id for judge in judges]
        if self.down:
            return {judge.id: [Unscored("connection refused")] * len(items) for judge in judges}
        return {j.id: [Scored(self.scores.get(j.id, j.score_range[1]))] * len(items) for j in judges}

    async def baseline(self, asked: RampRequest, line: Line) -> Sequence[float]:
        self.lines.append(line)
        return self.past

    async def stand(self, asked: RampRequest | InvalidRequest, milestone: Milestone) -> Stand:
        self.before.append(milestone)
        return self.stands

    async def suspended(self, judge: str, version: str) -> str:
        return ""

    async def overrides(self) -> Skips:
        known = Skips()
        for one in self.held:
            known.known.put(one.gate, (one,), {})
        return known

    async def rate_of(self, vertical: str | None, window_seconds: int) -> float | None:
        return self.rate


class Coverage:
    def __init__(self, scripted: Scripted) -> None:
        self.rate_of = scripted.rate_of

    async def rate(self, vertical: str | None, window_seconds: int) -> float | None:
        return await self.rate_of(vertical, window_seconds)


def verdict(
    scripted: Scripted | None = None, known: Registry | None = None, scores: Any = None, **changes: Any
) -> Verdict:
    ports = ports_of(scripted or Scripted())
    ports = replace(ports, scores=scores) if scores is not None else ports
    return asyncio.run(answer(requested(**changes), known or registry(), ports, NOW))


def requested(**changes: Any) -> RampRequest | InvalidRequest:
    request = read(json.dumps({**REQUEST, **changes}).encode())
    assert isinstance(request, (RampRequest, InvalidRequest))
    return request


def ports_of(scripted: Scripted) -> GatePorts:
    return GatePorts(scripted, scripted, scripted, Coverage(scripted), overrides=scripted.overrides)


def codes(found: Verdict) -> set[Code]:
    return {reason.code for reason in found.reasons}
