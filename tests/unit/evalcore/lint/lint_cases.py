"""What a test of a check consists of: a registry that has what is demanded, and one that lacks it at a known place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date

from evalcore.lint.check import Check
from evalcore.lint.checks import CHECKS
from evalcore.yaml.findings import Finding, Severity
from tests.unit.evalcore.registry.registry_files import EXTENSION, SELECTION, TODAY, parsed_registry, registry

QUALITY, SAFETY, BOOLEAN = "rules/helpfulness.yaml", "rules/refusal.yaml", "rules/honesty.yaml"
OVERLAY, MANIFEST, OVERRIDES = "rules/shop/helpfulness.yaml", "evaluation_manifest.yaml", "enforcement-overrides.yaml"
SHOP, PICKED, TRAVEL = EXTENSION("shop"), SELECTION("shop"), EXTENSION("travel")
COMPONENTS = frozenset({"greeting", "offer_discovery"})
ROUNDS = {"shop": frozenset({"general_qa"})}
AGREED = "../specs/verticals/shop/eval/agreement.yaml"
ENOUGH = "gates: {'minimum_sample': {pre_ramp: 400, pre_full: 400}}"
"""Items by which each judge of `registry_files` sees a fall by its own tolerance."""
RED_TEAM = (
    "{sample: {candidate: {url: 'http://agents'}, adversarial: {name: red-team, version: 2, items: 5}}, "
    f"{ENOUGH}}}"
)
"""A sample of golden and adversarial items, which the registry of `registry_files` leaves out, and enough of them."""
CHECK = {check.name: check for check in CHECKS}
Files = Mapping[str, str | None]


@dataclass(frozen=True)
class Case:
    """`holds` and `fails` are laid over the registry of `registry_files`; `at` is where the finding stands in the
    failing one, `file` or `file: field`; `says` are words of its message or fix. `severity`, where it is not the
    check's own."""

    check: str
    fails: Files
    at: str
    holds: Files = field(default_factory=dict)
    says: tuple[str, ...] = ()
    severity: Severity | None = None
    today: date = TODAY


def found(check: Check, written: Files, today: date) -> list[Finding]:
    """What one check finds. The files have to be readable, or nothing would be shown by finding nothing."""
    read, findings = parsed_registry(written, today)
    assert findings == []
    return list(check.run(replace(read, components=COMPONENTS, rounds=ROUNDS)))


def complaints(case: Case, check: Check) -> list[str]:
    """What of a case is not as it must be."""
    held = found(check, case.holds, case.today)
    out = [f"finds {finding} where everything holds" for finding in held]
    file, _, place = case.at.partition(": ")
    shown = registry().shown(file)
    there = [one for one in found(check, case.fails, case.today) if (one.file, one.field) == (shown, place)]
    if not there:
        return [*out, f"finds nothing at {case.at}"]
    told = " ".join(f"{one.message} {one.fix}" for one in there)
    out += [f"does not say {words!r}: {told}" for words in case.says if words not in told]
    if (case.severity or check.severity) not in {one.severity for one in there}:
        out.append(f"is no {case.severity or check.severity}")
    for one in there:
        if (one.check, one.clause) != (check.name, check.clause):
            out.append(f"comes as {one.check} ({one.clause})")
        if not (one.message and one.fix and (one.line > 0 or check.name == "rules-under-fifty")):
            out.append(f"has no place, message or fix: {one}")
    return out


def check_cases(cases: list[Case]) -> None:
    wrong = [(case, complaint) for case in cases for complaint in complaints(case, CHECK[case.check])]
    assert wrong == []
