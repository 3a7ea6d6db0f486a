"""What becomes of a changed file: it is caught, it changes nothing, or it is an edit that shows and relaxes nothing.

**Caught**: validating the tree, or resolving its manifest, gives an error or a warning. Of a file that the manifest is
made from, the manifest is made again first: that the committed one is out of date would catch everything and prove
nothing.

**Same**: every decision of the registry is the one it was: per judge and vertical all that holds, the judges of each
category and archetype, composites, gates. Computed from the registry that is built, not from a list of harmless fields.

**An edit**: whoever owns a file may change what it decides, and no file can tell a wrong 3 from a right 4. Then three
things must hold. The change shows: another `config_hash`, which the resolved manifest is part of, and for a judge a
line of `rule_diff`. It stays where it belongs: a rule file changes its judge alone, a vertical's file its vertical
alone. And it relaxes nothing that must hold: every safety judge runs everywhere and asks at least what it asked,
whoever's file was changed (its own central floor may move below the threshold that still blocks); no vertical asks less
than the platform; every threshold is on its judge's scale and not below its floor; every gate asks for a sample and for
coverage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import PurePosixPath
from typing import Any

from evalcore.gates.decision import Evidence
from evalcore.manifest.resolving import resolve
from evalcore.registry import files as assembling
from evalcore.registry.files import MANIFEST, RegistryFiles, Tree
from evalcore.registry.registry import Judge, Registry, build
from evalcore.registry.rule_diff import Change, changes, values
from evalcore.validation import checked
from evalcore.yaml.findings import Finding
from schemas.judges import Enforcement, Milestone, judge_id
from tests.shipped import LACKS

TODAY = date(2026, 11, 21)
SOURCES = ("../prompts/", "../specs/", "manifest-base.yaml")
"""Files that the manifest is made from."""


@dataclass(frozen=True)
class Fate:
    """`kind` is caught, same or edit; `told` the checks that told it, or the lines that show it."""

    kind: str
    told: tuple[str, ...] = ()


class Escaped(AssertionError):
    """A change that nothing catches and that is neither without effect nor an honest edit."""


class Shipped:
    """A registry in which nothing is wrong but what it warns of itself, and the fate of a changed file in it."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.files, findings = checked(self.tree, TODAY)
        self.known = {(one.check, one.field) for one in findings}
        assert {field for _, field in self.known} <= {*LACKS}
        self.registry = build(self.files)
        self.before = decisions(self.registry)

    def fate(self, name: str, raw: bytes) -> Fate:
        """Raises Escaped."""
        tree = self.tree.with_file(name, raw)
        caught, files = self.caught(name, tree)
        if caught:
            return Fate("caught", tuple(sorted({finding.check for finding in caught})))
        registry = build(files)
        after = decisions(registry)
        if after == self.before:
            return Fate("same")
        found = changes(self.registry.judges.values(), registry.judges.values())
        wrong = [*hidden(self.registry, registry, found), *strayed(name, found), *relaxed(self.registry, registry)]
        if wrong:
            raise Escaped("; ".join(wrong))
        return Fate("edit", tuple(sorted({f"{change.judge}.{change.field}" for change in found})))

    def caught(self, name: str, tree: Tree) -> tuple[list[Finding], RegistryFiles]:
        if name.startswith(SOURCES):
            resolution = resolve(tree, TODAY)
            news = self.news(resolution.findings)
            if news or resolution.text is None:
                return news, self.files
            tree = tree.with_file(MANIFEST, resolution.text.encode())
        files, findings = assembling.assemble(tree, TODAY)
        # What keeps a file from being read is part of what `checked` tells; the linter is asked where nothing does.
        if findings:
            return findings, files
        files, findings = checked(tree, TODAY)
        return self.news(findings), files

    def news(self, findings: Iterable[Finding]) -> list[Finding]:
        """What was not found before the change."""
        return [one for one in findings if (one.check, one.field) not in self.known]


def kept_by_hand(tree: Tree) -> Tree:
    """The same registry where nothing resolves the manifest (PF-9 §10.3): no sources, and no header that knows it."""
    files = {name: raw for name, raw in tree.files.items() if not name.startswith(SOURCES)}
    lines = files[MANIFEST].splitlines(keepends=True)
    return Tree(tree.root, {**files, MANIFEST: b"".join(line for line in lines if not line.startswith(b"#"))})


def decisions(registry: Registry) -> dict[str, Any]:
    """Everything a gate, a lookup or a sync takes from the registry."""
    seen = [None, *sorted(registry.verticals)]
    return {
        "judges": {key: values(judge) | {"version": judge.version} for key, judge in registry.judges.items()},
        "dimensions": {key: dict(judge.dimensions) for key, judge in registry.judges.items()},
        "categories": {key: [judge.id for judge in judges] for key, judges in registry.categories.items()},
        "declared": {
            name: category.model_dump(exclude={"description"}) for name, category in registry.category_files.items()
        },
        "archetypes": {
            (name, vertical): [judge.id for judge in registry.for_archetype(name, vertical)]
            for name in registry.archetypes
            for vertical in seen
        },
        "sub_agents": dict(registry.archetypes),
        "composites": {name: composite.model_dump() for name, composite in registry.composites.items()},
        "gates": registry.gates.model_dump(),
        "sample": registry.sample.model_dump(),
        "dataset": registry.manifest.get("dataset"),
        "schema": registry.manifest.get("schema"),
        "verticals": registry.verticals,
    }


def hidden(before: Registry, after: Registry, found: tuple[Change, ...]) -> Iterator[str]:
    if before.config_hash == after.config_hash:
        yield "decisions changed and config_hash did not"
    one, other = decisions(before), decisions(after)
    if one["judges"] != other["judges"] and not found:
        yield "a judge changed and rule_diff says nothing"


def strayed(name: str, found: tuple[Change, ...]) -> Iterator[str]:
    """A rule file is about one judge, a vertical's about one judge of that vertical."""
    match PurePosixPath(name).parts:
        case ("rules", file):
            others = [change for change in found if change.judge != judge_id(PurePosixPath(file).stem)]
        case ("rules", vertical, file):
            own = (judge_id(PurePosixPath(file).stem), vertical)
            others = [change for change in found if (change.judge, change.vertical) != own]
        case _:
            others = []
    for change in others:
        yield f"{change.judge} of {change.vertical or 'the platform'} changed: {change.field}"


def relaxed(before: Registry, after: Registry) -> Iterator[str]:
    gates = after.gates
    if min(Evidence.at(milestone, gates, 0).scored for milestone in Milestone) < 1 or not gates.coverage_floor > 0:
        yield "a gate asks for no sample, or for no coverage"
    if not {Milestone.PRE_RAMP, Milestone.PRE_FULL} <= gates.window_seconds.keys():
        yield "a gate on traffic has no window"
    for (name, vertical), judge in after.judges.items():
        where = f"{name} of {vertical or 'the platform'}"
        platform = after.judges[name, None]
        if weaker := sorted(_weaker(judge, platform)):
            yield f"{where} asks less than the platform: {', '.join(weaker)}"
        if judge.classification is not platform.classification:
            yield f"{where} is classified as {judge.classification}"
        yield from (f"{where}: {wrong}" for wrong in _off_scale(judge))
    for (name, vertical), was in before.judges.items():
        judge = after.judges.get((name, vertical)) or after.judges.get((name, None))
        if not was.safety:
            continue
        where = f"safety judge {name} of {vertical or 'the platform'}"
        if judge is None or not judge.safety:
            yield f"{where} is none any more"
            continue
        if weaker := sorted(_weaker(judge, was) - {"floor"}):
            yield f"{where} asks less than it did: {', '.join(weaker)}"
        if not judge.fires or judge.rule.sampling_rate < 1 or judge.filter or judge.sub_agents:
            yield f"{where} does not run on everything"
        for key, judges in after.categories.items():
            if key[1] == vertical and name not in [one.id for one in judges]:
                yield f"{where} does not run on {key[0]}"


def _weaker(judge: Judge, than: Judge) -> set[str]:
    """In what a judge asks less than another. What passes is above threshold and floor both."""
    found = set()
    for milestone in Milestone:
        if max(judge.thresholds[milestone], judge.floor) < max(than.thresholds[milestone], than.floor):
            found.add(f"threshold at {milestone}")
        if judge.enforcement[milestone] is Enforcement.WARN and than.enforcement[milestone] is Enforcement.BLOCK:
            found.add(f"enforcement at {milestone}")
    if judge.floor < than.floor:
        found.add("floor")
    if judge.tolerance > than.tolerance:
        found.add("tolerance")
    return found


def _off_scale(judge: Judge) -> Iterator[str]:
    low, high = judge.score_range
    for milestone, value in [*judge.thresholds.items(), ("default", judge.default_threshold)]:
        if not low <= value <= high:
            yield f"threshold {value} at {milestone} is off its scale"
        if value < judge.floor:
            yield f"threshold {value} at {milestone} is below its floor {judge.floor}"
    if not low <= judge.floor <= high:
        yield f"floor {judge.floor} is off its scale"
    if not 0 <= judge.tolerance < high - low:
        yield f"a tolerance of {judge.tolerance} is no small part of its scale"
