"""Says what a failing judge does at each milestone, block or warn (PC5 §5.2, PF-9 §5.2, Decision 10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from schemas.judges import Classification, Enforcement, Milestone
from schemas.manifests import Override

BLOCK, WARN = Enforcement.BLOCK, Enforcement.WARN
DEFAULTS: Mapping[Classification, Mapping[Milestone, Enforcement]] = {
    Classification.SAFETY_REFUSAL: dict.fromkeys(Milestone, BLOCK),
    Classification.QUALITY: {Milestone.PRE_MERGE: WARN, Milestone.PRE_RAMP: BLOCK, Milestone.PRE_FULL: BLOCK},
}
Stated = Mapping[Milestone, Enforcement]


def permits(overrides: Iterable[Override], today: date, milestone: Milestone, vertical: str | None) -> bool:
    """Tells whether an audited override lets the judge warn there today. An override without a vertical is for all."""
    return any(
        entry.enforcement is WARN
        and entry.milestone is milestone
        and entry.vertical in (None, vertical)
        and entry.approved_on <= today <= entry.expires
        for entry in overrides
    )


def effective(
    classification: Classification,
    central: Stated | None,
    own: Stated | None,
    overrides: Iterable[Override],
    today: date,
    vertical: str | None,
) -> dict[Milestone, Enforcement]:
    """Returns what a failing judge does at each milestone. `central` and `own` are stated by the rule file and the
    vertical's, `overrides` are the judge's audited entries.

    Safety judges block, whatever is stated. A stricter statement always holds, a looser one only where an override
    permits it; an override alone loosens nothing, and once it expires, the default holds again.
    """
    out = dict(DEFAULTS[classification])
    if classification is Classification.SAFETY_REFUSAL:
        return out
    entries = tuple(overrides)
    for stated in (central or {}, own or {}):
        for milestone, wanted in stated.items():
            if wanted is BLOCK or permits(entries, today, milestone, vertical):
                out[milestone] = wanted
    return out
