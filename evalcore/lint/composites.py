"""Checks composites: groups of judges with one aggregate (PF-9 §3.1, FR-10)."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from evalcore.lint.check import Find, Manifest, Subject, of_manifest
from evalcore.lint.names import spelling
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding
from evalcore.yaml.suggestions import near_miss
from schemas.judges import JUDGE_ID, judge_id, score_range

COMPOSITES = Subject("Composites", "PF-9 §3.1, FR-10")


@COMPOSITES.error()
@of_manifest
def composite_name(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """A composite has a name of its own, not that of a judge, a judge's score or another composite."""
    seen: dict[str, str] = {}
    scores = {spelling(rule.model.score_name): judge for judge, rule in files.rules.items()}
    for composite in manifest.model.composites:
        name = judge_id(composite)
        path = ("composites", composite)
        other = seen.setdefault(name, composite)
        if name in files.rules:
            yield find(manifest, path, f"{composite!r} is the id of a judge too", "rename the composite")
        elif (judge := scores.get(spelling(composite))) is not None:
            message = f"{composite!r} is the score name of judge {judge!r} too"
            yield find(manifest, path, message, "rename the composite")
        elif other != composite:
            yield find(manifest, path, f"{composite!r} and {other!r} are the same name", "rename one of the two")
        elif not JUDGE_ID.fullmatch(name):
            fix = "use lower-case letters, digits and underscores"
            yield find(manifest, path, f"{composite!r} can't be the name of a composite", fix)


@COMPOSITES.error()
@of_manifest
def composite_weights(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """A `weighted_mean` has weights, one above zero for each member; any other aggregate has none."""
    for composite, declared in manifest.model.composites.items():
        path = ("composites", composite)
        weighted = declared.aggregate == "weighted_mean"
        if declared.weights is None:
            if weighted:
                fix = "add a weight for each judge, or write `aggregate: mean`"
                yield find(manifest, path, f"{composite} is a weighted mean without weights", fix)
            continue
        if not weighted:
            message = f"{composite} has weights, which its aggregate {declared.aggregate} does not use"
            fix = "write `aggregate: weighted_mean`, or remove them"
            yield find(manifest, (*path, "weights"), message, fix)
        members = {judge_id(name) for name in declared.judges}
        weights = {judge_id(name): name for name in declared.weights}
        for name in sorted(members - weights.keys()):
            fix = f"add `{name}: 1`"
            yield find(manifest, (*path, "weights"), f"member {name} of {composite} has no weight", fix)
        for name, written in weights.items():
            value = declared.weights[written]
            place = (*path, "weights", written)
            if name not in members:
                message = f"{written!r} is no member of {composite}{near_miss(name, members)}"
                yield find(manifest, place, message, "remove it, or add the judge to the composite")
            elif not (isfinite(value) and value > 0):
                fix = "write a number above 0, or remove the judge from the composite"
                yield find(manifest, place, f"a weight of {value:g} is none", fix)


@COMPOSITES.warning()
@of_manifest
def composite_one_scale(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """The members of a composite score on one scale, so that their aggregate means something."""
    for composite, declared in manifest.model.composites.items():
        judges = [judge_id(name) for name in declared.judges if judge_id(name) in files.rules]
        scales = {judge: score_range(files.rules[judge].model) for judge in judges}
        if len(set(scales.values())) > 1:
            shown = ", ".join(f"{judge} {low:g}–{high:g}" for judge, (low, high) in scales.items())
            message = f"the members of {composite} score on different scales: {shown}"
            fix = "group judges of one scale; the wider scale would decide the aggregate"
            yield find(manifest, ("composites", composite, "judges"), message, fix)
