"""All checks, by subject, and the linter that runs them."""

from __future__ import annotations

from evalcore.corpus import Corpus
from evalcore.linting import (
    Check,
    archetypes,
    bindings,
    cadence,
    categories,
    composites,
    drift,
    enforcement,
    filters,
    gate_samples,
    identity,
    items,
    names,
    paths,
    patterns,
    provenance,
    safety,
    sampling,
    scales,
    selections,
    size,
    targets,
    verticals,
)
from evalcore.problems import Problem

SUBJECTS: dict[str, tuple[Check, ...]] = {
    "Identity": identity.CHECKS,
    "Names": names.CHECKS,
    "Scales": scales.CHECKS,
    "Safety": safety.CHECKS,
    "Verticals": verticals.CHECKS,
    "Enforcement": enforcement.CHECKS,
    "Provenance": provenance.CHECKS,
    "Cadence": cadence.CHECKS,
    "Drift": drift.CHECKS,
    "Composites": composites.CHECKS,
    "Categories": categories.CHECKS,
    "Selections": selections.CHECKS,
    "Archetypes": archetypes.CHECKS,
    "Bindings": bindings.CHECKS,
    "Filters": (*filters.CHECKS, *targets.CHECKS, *patterns.CHECKS),
    "Items": items.CHECKS,
    "Paths": paths.CHECKS,
    "Sampling": (*sampling.CHECKS, *gate_samples.CHECKS),
    "Size": size.CHECKS,
}
CHECKS: tuple[Check, ...] = tuple(check for checks in SUBJECTS.values() for check in checks)


def lint(corpus: Corpus) -> list[Problem]:
    """Everything the checks find, all at once, by place. Pure: the same corpus gives the same findings."""
    return sorted({problem for check in CHECKS for problem in check.run(corpus)})
