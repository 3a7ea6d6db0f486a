"""What a sync has to do so that a vertical's Opik project holds its judges as the files say (PC5 FR-7, FR-9, AC-8).

Files are the source of truth; Opik holds copies. A rule there is ours if it carries our metadata.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from evalcore.opik_rule import (
    LLM_JUDGE,
    LONGEST_NAME,
    METADATA,
    Inexpressible,
    OpikRule,
    OutputField,
    TraceFilter,
    desired,
    opik_filter,
)
from evalcore.registry import Judge

__all__ = [
    "LLM_JUDGE", "METADATA", "Inexpressible", "LeftAlone", "OpikRule", "OutputField", "Plan", "TraceFilter", "Update",
    "desired", "opik_filter", "plan",
]  # fmt: skip


@dataclass(frozen=True)
class Update:
    """`rule` is what is to stand there, under the id of what does; `changes` names what differs."""

    rule: OpikRule
    changes: tuple[str, ...]


@dataclass(frozen=True)
class LeftAlone:
    name: str
    reason: str


@dataclass(frozen=True)
class Plan:
    create: tuple[OpikRule, ...] = ()
    update: tuple[Update, ...] = ()
    unchanged: tuple[str, ...] = ()
    left_alone: tuple[LeftAlone, ...] = field(default=())

    @property
    def empty(self) -> bool:
        return not self.create and not self.update


def plan(
    judges: Iterable[Judge],
    vertical: str,
    live: bool,
    there: Iterable[OpikRule],
    project: str,
    only: Collection[str] | None = None,
) -> Plan:
    """`judges` as the vertical sees them; `there` all rules of its project, whose id is `project`; `live`: Opik is the
    vertical's one live judge, else what is synced is disabled there; `only`: ids of the judges it is about. Nothing is
    ever deleted, and no rule that is not ours, or that other projects share, is touched."""
    ours: dict[str, OpikRule] = {}
    left: list[LeftAlone] = []
    standing = sorted(there, key=lambda rule: rule.id)
    for rule in standing:
        judge_id = rule.metadata.get("judge_id")
        if only is not None and judge_id not in only:
            continue
        if judge_id is None:
            left.append(LeftAlone(rule.name, "not made by a sync"))
        elif rule.metadata.get("vertical") != vertical:
            left.append(LeftAlone(rule.name, f"belongs to vertical {rule.metadata.get('vertical')}"))
        elif set(rule.projects) - {project}:
            left.append(LeftAlone(rule.name, "other projects share it"))
        elif judge_id in ours:
            left.append(LeftAlone(rule.name, f"a second copy of {judge_id}; delete it in Opik"))
        else:
            ours[judge_id] = rule
    create, update, unchanged = [], [], []
    for judge in sorted(judges, key=lambda judge: judge.id):
        if only is not None and judge.id not in only:
            continue
        here = ours.pop(judge.id, None)
        try:
            wanted = desired(judge, vertical, live)
        except Inexpressible as error:
            left.append(LeftAlone(judge.rule.name, str(error)))
            continue
        if here is None:
            create.append(wanted)
            continue
        wanted = _under_the_name_it_got(wanted, here, standing)
        if changes := wanted.differences(here):
            update.append(Update(replace(wanted, id=here.id), changes))
        else:
            unchanged.append(judge.id)
    left += [LeftAlone(rule.name, f"judge {judge_id} is no longer in the registry") for judge_id, rule in ours.items()]
    return Plan(tuple(create), tuple(update), tuple(unchanged), tuple(left))


def _under_the_name_it_got(wanted: OpikRule, here: OpikRule, standing: Iterable[OpikRule]) -> OpikRule:
    """Opik numbers a name that another rule of the project has: `Response Quality-1`. To ask for the plain one again
    would be a change each time."""
    numbered = re.fullmatch(re.escape(wanted.name[: LONGEST_NAME - 12]) + r".*-\d+", here.name, re.DOTALL)
    taken = any(rule.id != here.id and rule.name.lower() == wanted.name.lower() for rule in standing)
    return replace(wanted, name=here.name) if numbered and taken else wanted
