"""Deletes the copies of a judge that is no longer in the registry from the verticals' Opik projects (PC5 §2, FR-9)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from evalcore.registry.opik_rules import OpikRule, Plan
from evalcore.registry.registry import Registry
from rampgate.registry.rule_sync import RuleSync, VerticalSync
from rampgate.settings import Settings
from schemas.verticals import Vertical

if TYPE_CHECKING:
    from streams.opik.rules import OpikRules


class RuleRemoval(RuleSync):
    """`look` finds what a sync made of the judge, and `remove` deletes it. A rule that no sync made, that is another
    vertical's or that other projects share is left alone."""

    def __init__(self, settings: Settings, registry: Registry, verticals: Iterable[Vertical], judge: str) -> None:
        super().__init__(settings, registry, verticals, {judge})
        self._judge = judge
        self.found: dict[str, list[OpikRule]] = {}

    @property
    def entries(self) -> list[dict[str, Any]]:
        """What is to be deleted, for the audit."""
        return [
            {"judges": [self._judge], "vertical": part.vertical.name, "project": part.vertical.project, "rule": rule.id}
            for part in self.parts
            for rule in self.found.get(part.vertical.name, ())
        ]

    async def remove(self) -> None:
        for part in self.parts:
            if part.trouble or not self.found.get(part.vertical.name):
                continue
            async with self._gateway(part, "write") as gateway:
                doomed = [rule.id for rule in self.found[part.vertical.name]]
                await gateway.delete(part.project_id, doomed)
                part.written += doomed

    async def _plan(self, part: VerticalSync, gateway: OpikRules) -> Plan:
        self.found[part.vertical.name] = [
            rule
            for rule in await gateway.rules(part.project_id)
            if rule.metadata.get("judge_id") == self._judge
            and rule.metadata.get("vertical") == part.vertical.name
            and not rule.copied
            and not set(rule.projects) - {part.project_id}
        ]
        return Plan()
