"""A vertical's turns in a local Opik, and its calibration round as a command beside that server's loop."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evalcore.registry.disk import today
from tests.contract.opik.scripted_opik import ScriptedOpik, trace_id_at
from tests.contract.opik.traces_rig import iso
from tests.memory_ports import AuditSink
from tests.unit.rampgate.calibration.round_rig import JUDGES, agreeing, calibrate, turn

PROJECT = "shop-eval"
BEGUN = ("--ticket", "PLT-700", "--acceptable", "4", "--runs", "2")


def hash_of(items: Any) -> str:
    return hashlib.sha256("\n".join(sorted(items)).encode()).hexdigest()


@dataclass
class Rig:
    """The round `r1` of `shop`, whose turns are in Opik."""

    opik: ScriptedOpik
    sink: AuditSink
    folder: Path
    traces: dict[str, str] = field(default_factory=dict)
    """The trace's id of each turn."""

    @property
    def round(self) -> Path:
        return self.folder / "specs/verticals/shop/eval/rounds/r1"

    def drawn(self) -> dict[str, dict[str, Any]]:
        """The lines of the draw by turn."""
        lines = (self.round / "draw.jsonl").read_text().splitlines()
        return {one["item_id"]: one for one in map(json.loads, lines)}

    async def calibrate(self, *words: object) -> tuple[int, dict[str, Any], str]:
        """In a thread, since the server lives in this loop."""
        return await asyncio.to_thread(calibrate, *words)

    async def add(self, *numbers: int, days_ago: int = 3, project: str = PROJECT, **changed: Any) -> None:
        """Puts the turns of these numbers, as the round's files have them, into Opik."""
        traces, scores = [], []
        for number in numbers:
            one = turn(number)
            at = round(datetime.combine(today() - timedelta(days=days_ago), datetime.min.time(), UTC).timestamp())
            moment = (at + 3_600) * 1_000 + number
            name = trace_id_at(moment)
            self.traces[one["response_id"]] = name
            labels = {key: one[key] for key in ("response_id", "vertical", "sub_agent", "category")}
            labels |= {"environment": "production", **changed.get("metadata", {})}
            texts = {"input": one["user_query"], "output": one["agent_response"], **changed.get("texts", {})}
            span = {"start_time": iso(moment), "end_time": iso(moment + 1_000)}
            traces.append({"id": name, "project_name": project, "name": "turn", "metadata": labels, **texts, **span})
            said = {**one["judge_scores"], **one["feedback_scores"]}
            about = {"id": name, "project_name": project, "source": "sdk"}
            scores += [{**about, "name": judge, "value": score} for judge, score in said.items()]
        await self.opik.add_traces(*traces)
        await self.put(*scores)

    async def score(
        self, item: str, author: str, value: float, name: str = "people/helpfulness", trace: str = ""
    ) -> None:
        """As a person does in Opik's pages."""
        await self.put(self.said(item, author, value, name, trace))

    def said(self, item: str, author: str, value: float, name: str, trace: str = "") -> dict[str, Any]:
        about = {"id": trace or self.traces[item], "project_name": PROJECT, "source": "ui"}
        return {**about, "name": name, "value": value, "author": author}

    async def agree(self, items: Iterable[str], people: Iterable[str] = ("ann", "ben")) -> None:
        """Has these people score the turns for all judges, mostly as one another and as the judges."""
        await self.put(
            *(
                self.said(item, person, agreeing({"item_id": item}, person), f"people/{judge}")
                for item in items for person in people for judge in JUDGES
            )
        )  # fmt: skip

    async def put(self, *scores: dict[str, Any]) -> None:
        for first in range(0, len(scores), 1_000):
            body = {"scores": scores[first : first + 1_000]}
            await self.opik.call("PUT", "/v1/private/traces/feedback-scores", body)


def rig_of(opik: ScriptedOpik, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    sink = AuditSink()
    monkeypatch.setattr("rampgate.wiring.Producer", lambda access: sink)
    monkeypatch.setattr("rampgate.calibration.cycle.configure_logs", lambda level, form: None)
    monkeypatch.setenv("RAMPGATE_OPIK", opik.url)
    monkeypatch.setenv("RAMPGATE_OPIK_RETRY_SECONDS", "0")
    monkeypatch.setenv("RAMPGATE_OPIK_LOOKUPS_PER_MINUTE", "60000")
    monkeypatch.setattr("streams.opik.traces.SINGLE_TRACES_PER_MINUTE", 600_000)
    return Rig(opik, sink, folder)
