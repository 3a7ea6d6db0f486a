"""Compares two versions of the judges by the values that hold, not by lines of text (PC5 NFR-5).

A threshold that moves from the manifest into a rule file changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evalcore.registry.opik_rules import carried
from evalcore.registry.registry import Judge

_RESOLVED = frozenset({"threshold", "floor", "tolerance", "enforcement", "filter", "classification", "id"})
"""Fields of the rule file whose resolved value is told instead."""


@dataclass(frozen=True, order=True)
class Change:
    """`field` is "" and one side None where the judge itself came or went."""

    judge: str
    vertical: str
    field: str
    before: Any
    after: Any


def changes(before: Iterable[Judge], after: Iterable[Judge]) -> tuple[Change, ...]:
    """By vertical ("" for the platform's view), judge and field."""
    old = {(judge.vertical or "", judge.id): values(judge) for judge in before}
    new = {(judge.vertical or "", judge.id): values(judge) for judge in after}
    found = []
    for vertical, judge_id in sorted(old.keys() | new.keys()):
        was, now = old.get((vertical, judge_id)), new.get((vertical, judge_id))
        if was is None or now is None:
            found.append(Change(judge_id, vertical, "", was and judge_id, now and judge_id))
            continue
        for name in sorted(was.keys() | now.keys()):
            if was.get(name) != now.get(name):
                found.append(Change(judge_id, vertical, name, was.get(name), now.get(name)))
    return tuple(found)


def values(judge: Judge) -> dict[str, Any]:
    """All that holds for a judge, by dotted name."""
    resolved = carried(judge, judge.vertical or "")
    own = {"judge_id", "vertical", "version"}
    told = {name: value for name, value in resolved.items() if name not in own}
    told["filter"] = judge.filter.model_dump(mode="json") if judge.filter is not None else None
    told["sub_agents"] = list(judge.sub_agents)
    written = judge.rule.model_dump(mode="json")
    told = {name: value for name, value in written.items() if name not in _RESOLVED} | told
    return dict(_leaves(told))


def _leaves(value: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, item in value.items():
        if isinstance(item, dict):
            yield from _leaves(item, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", item
