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
"""Fields of the rule file for which the resolved value is compared instead."""


@dataclass(frozen=True, order=True)
class Change:
    """A changed value; `field` is "" and one side None where the judge itself was added or removed."""

    judge: str
    vertical: str
    field: str
    before: Any
    after: Any


def changes(before: Iterable[Judge], after: Iterable[Judge]) -> tuple[Change, ...]:
    """Returns the changes, sorted by vertical ("" for the platform's view), judge and field."""
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
    """Returns all values that hold for a judge, by dotted name."""
    resolved = carried(judge, judge.vertical or "")
    own = {"judge_id", "vertical", "version"}
    holds = {name: value for name, value in resolved.items() if name not in own}
    holds["filter"] = judge.filter.model_dump(mode="json") if judge.filter is not None else None
    holds["sub_agents"] = list(judge.sub_agents)
    holds["trace"] = layout.model_dump() if (layout := judge.layouts.get(judge.vertical or "")) else {}
    written = judge.rule.model_dump(mode="json")
    holds = {name: value for name, value in written.items() if name not in _RESOLVED} | holds
    return dict(_leaves(holds))


def _leaves(value: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, item in value.items():
        if isinstance(item, dict):
            yield from _leaves(item, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", item
