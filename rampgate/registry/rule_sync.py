"""Syncs a registry's judges into each vertical's own Opik project (PC5 FR-7, FR-9, AC-8, §5.7; PF-9 §5.5).

`look` reads and plans. `carry_out` writes what differs, continues after a rule that Opik refuses, and reads everything
back. A failing vertical does not stop the others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents.ports import Unauthorized, Unavailable
from evalcore.judges.kinds import needs_model
from evalcore.registry.opik_rules import RULE_ID, OpikRule, Plan, plan
from evalcore.registry.registry import Registry
from rampgate.registry.verticals import key_of, workspace_of
from rampgate.settings import Settings
from schemas.verticals import Vertical

if TYPE_CHECKING:
    from streams.opik.rules import OpikRules

CONNECTIONS = 2


@dataclass(frozen=True)
class Failed:
    """A rule that Opik refused, can't take, stored with other values, or has twice."""

    judge: str
    reason: str


@dataclass
class VerticalSync:
    """One vertical's part of a sync. `trouble` says why it stopped; the rules in `written` were written nevertheless.
    `absent`: Opik has no such project."""

    vertical: Vertical
    key: str | None = field(default=None, repr=False)
    project_id: str = ""
    plan: Plan = field(default_factory=Plan)
    written: list[str] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    trouble: str = ""
    absent: bool = False

    def document(self) -> dict[str, Any]:
        made = self.plan
        return {
            "vertical": self.vertical.name,
            "project": self.vertical.project,
            "live_judge": self.vertical.live_judge,
            "create": [judge_of(rule) for rule in made.create],
            "update": [{"judge": judge_of(one.rule), "changes": list(one.changes)} for one in made.update],
            "unchanged": list(made.unchanged),
            "left_alone": [{"name": one.name, "reason": one.reason} for one in made.left_alone],
            "delete": [{"judge": judge_of(rule), "rule": rule.id} for rule in made.delete],
            "written": list(self.written),
            "failed": [{"judge": one.judge, "reason": one.reason} for one in self.failed],
            "error": self.trouble or None,
        }


class RuleSync:
    """A sync of the registry's judges into the verticals' projects; `only`: ids of the judges to sync, None for all;
    `delete`: ids of judges that are no longer in the registry, whose copies are deleted."""

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        verticals: Iterable[Vertical],
        only: Collection[str] | None = None,
        delete: Collection[str] = (),
    ) -> None:
        self._settings, self._registry, self._only, self._delete = settings, registry, only, delete
        self.parts = [_part(settings, vertical) for vertical in verticals]

    @property
    def empty(self) -> bool:
        return all(part.plan.empty for part in self.parts)

    @property
    def exit_code(self) -> int:
        """2 where a vertical could not be reached or written, 1 where a rule is not written or there twice, else 0."""
        if any(part.trouble for part in self.parts):
            return 2
        return 1 if any(part.failed for part in self.parts) else 0

    @property
    def deletions(self) -> list[dict[str, Any]]:
        """What is to be deleted, for the audit."""
        return [
            {
                "judges": [judge_of(rule)],
                "vertical": part.vertical.name,
                "project": part.vertical.project,
                "rule": rule.id,
            }
            for part in self.parts
            for rule in part.plan.delete
        ]

    def documents(self) -> list[dict[str, Any]]:
        return [part.document() for part in self.parts]

    async def look(self) -> None:
        """Plan each vertical; reads only."""
        down = ""
        for part in self.parts:
            part.trouble = down or part.trouble
            if part.trouble:
                continue
            async with self._gateway(part, "read") as gateway:
                part.project_id = await gateway.project_id(part.vertical.project)
                part.plan = await self._plan(part, gateway)
                part.failed = _failing(part.plan)
            down = part.trouble if part.trouble.startswith(_down(self._settings)) else ""

    async def carry_out(self) -> None:
        """Do what was planned, then read it back."""
        for part in self.parts:
            if part.trouble or part.plan.empty:
                continue
            async with self._gateway(part, "write") as gateway:
                part.failed = []
                rules = (*part.plan.create, *(one.rule for one in part.plan.update))
                await self._write(part, gateway, rules, part.written)
                if doomed := part.plan.delete:
                    await gateway.delete(part.project_id, [rule.id for rule in doomed])
                    part.written += map(judge_of, doomed)
                again = await self._plan(part, gateway)
                await self._write(part, gateway, [one.rule for one in again.update if one.changes == (RULE_ID,)], [])
                self._compare(part, again)

    async def _plan(self, part: VerticalSync, gateway: OpikRules) -> Plan:
        name, there = part.vertical.name, await gateway.rules(part.project_id)
        judges = [judge for judge in self._registry.all(name) if needs_model(judge)]  # Opik's rules ask models
        live = part.vertical.live_judge == "opik"
        return plan(judges, name, live, there, part.project_id, self._only, self._delete)

    async def _write(
        self, part: VerticalSync, gateway: OpikRules, rules: Iterable[OpikRule], written: list[str]
    ) -> None:
        from streams.opik.client import Refused

        for rule in rules:
            try:
                await gateway.write(part.project_id, rule)
                written.append(judge_of(rule))
            except Refused as error:
                part.failed.append(Failed(judge_of(rule), str(error)))

    def _compare(self, part: VerticalSync, again: Plan) -> None:
        """Note the rules that Opik stored with other values, and those that another sync made meanwhile. Floor,
        tolerance, classification and provenance have to survive (PC5 AC-8), so a rule just written must need no further
        change but for its id."""
        left = {judge_of(rule): "it is not there" for rule in again.create}
        left |= {judge_of(rule): "it is still there" for rule in again.delete}
        changes = {judge_of(one.rule): [name for name in one.changes if name != RULE_ID] for one in again.update}
        left |= {judge: f"differs in {', '.join(names)}" for judge, names in changes.items() if names}
        part.failed += _failing(again)
        for judge in part.written:
            if judge in left:
                part.failed.append(Failed(judge, f"Opik accepted it and stored other values: {left[judge]}"))

    @asynccontextmanager
    async def _gateway(self, part: VerticalSync, doing: str) -> AsyncIterator[OpikRules]:
        """A gateway with the vertical's credentials. An error inside ends the vertical's part, and is kept in
        `trouble`."""
        from streams.opik.client import OpikClient, Refused
        from streams.opik.rules import NoProject, OpikRules

        settings, vertical = self._settings, part.vertical
        own = _file(settings, vertical)
        workspace = workspace_of(vertical, settings)
        client = OpikClient(settings.opik, workspace, part.key, settings.opik_timeout_seconds, CONNECTIONS)
        try:
            yield OpikRules(client, settings.opik_retry_seconds)
        except Unauthorized as error:
            may = "may read and not write" if doing == "write" else "may not read this project"
            part.trouble = f"the key of vertical {vertical.name} {may} ({error}, or api_key_file in {own})"
        except NoProject as error:
            part.trouble, part.absent = f"{own}: project: {error}", True
        except Refused as error:
            part.trouble = f"vertical {vertical.name}: {error}"
        except Unavailable as error:
            rest = "; what was written stays, run it again for the rest" if doing == "write" else ""
            part.trouble = f"{_down(settings)}: {error}{rest}"
        finally:
            await client.close()


def _failing(made: Plan) -> list[Failed]:
    """The judges that a project has more than once, as after two syncs at once, and those that it can't take."""
    return [Failed(one.failing, one.reason) for one in made.left_alone if one.failing]


def judge_of(rule: OpikRule) -> str:
    return str(rule.metadata["judge_id"])


def _part(settings: Settings, vertical: Vertical) -> VerticalSync:
    """The vertical's part, with its own key, else the operator's."""
    try:
        return VerticalSync(vertical, key_of(vertical, settings))
    except ValueError as error:
        return VerticalSync(vertical, trouble=f"{_file(settings, vertical)}: api_key_file: {error}")


def _file(settings: Settings, vertical: Vertical) -> str:
    return f"{settings.configs}/verticals/{vertical.name}.yaml"


def _down(settings: Settings) -> str:
    return f"Opik at {settings.opik} can't be reached"
