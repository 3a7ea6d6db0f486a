"""Traces at hand as the sample of a rollout gate: whose judges score them, and which of them (PC5 §5.5). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalcore.gates.golden import firing_on
from evalcore.gates.items import Item, items_of
from evalcore.gates.requests import named
from evalcore.gates.sampling import fingerprint
from evalcore.registry import Registry
from schemas.judges import Milestone
from schemas.verdicts import Composition, SampleFacts

SCOPE = "file"
"""Whoever made the file says whose traces they are."""


@dataclass(frozen=True)
class Traced:
    """`names` of the judges that decide; each scores what of the items is its own."""

    items: Sequence[Item]
    names: Sequence[str]
    source: str

    @property
    def facts(self) -> SampleFacts:
        golden = sum(item.context == "offline" for item in self.items)
        composition = Composition(golden, len(self.items) - golden)
        return SampleFacts(SCOPE, fingerprint(one.id for one in self.items), len(self.items), None, composition, None)


def traced(
    traces: Sequence[Mapping[str, Any]],
    source: str,
    listed: Sequence[str] | None,
    milestone: Milestone,
    registry: Registry,
    vertical: str | None,
) -> tuple[Traced, list[str]]:
    """By the judges of a list, as an experiment's (PC6 §5.6); without one by those of the traces' categories, each on
    the traces of its own, and those of no category that is known by all of them. Safety judges in any case. And what is
    wrong in the list, or with the want of one."""
    items = items_of(traces, milestone, registry.manifest.get("schema", {}))
    if listed is not None:
        names, wrong = named(listed, "--judges", registry, vertical)
        return Traced(items, names, source), wrong
    firing = [firing_on(one, registry, vertical) for one in traces]
    found = sorted(set[str]().union(*(judges or () for judges in firing)))
    wrong = [] if found else ["no trace has a metadata.category that the manifest has: name the judges, --judges a,b"]
    items = [replace(item, judges=judges) for item, judges in zip(items, firing, strict=True)]
    return Traced(items, found, source), wrong
