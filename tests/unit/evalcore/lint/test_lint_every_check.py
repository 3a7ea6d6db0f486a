"""The linter as a whole: every check is tested, named, and told of; it is pure and says everything at once."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from evalcore.lint.checks import CHECKS, SUBJECTS, as_markdown, lint
from evalcore.validation import checked
from evalcore.yaml.findings import Severity
from tests.root import ROOT
from tests.unit.evalcore.lint.lint_cases import (
    COMPONENTS,
    MANIFEST,
    OVERLAY,
    QUALITY,
    RED_TEAM,
    ROUNDS,
    SAFETY,
    Case,
    complaints,
)
from tests.unit.evalcore.registry.registry_files import REGISTRY, TODAY, parsed_registry, registry

HERE = Path(__file__).parent
DOCS = ROOT / "docs"
CASES: list[Case] = [
    case
    for path in sorted(HERE.glob("test_lint_*.py"))
    if path.stem != Path(__file__).stem
    for case in import_module(f"tests.unit.evalcore.lint.{path.stem}").CASES
]
CLAUSE = re.compile(r"(PC5|PF-9|contracts) (§|FR-|AC-|NFR-|R-|Decisions? )\d")


def test_every_check_has_a_registry_that_holds_and_one_that_fails_and_cases_are_about_checks_that_exist() -> None:
    assert {case.check for case in CASES} == {check.name for check in CHECKS}
    assert {case.check for case in CASES if case.fails and case.holds} == {check.name for check in CHECKS}


def test_a_check_has_a_name_of_its_own_a_clause_and_a_summary() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    for check in CHECKS:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", check.name)
        assert CLAUSE.search(check.clause), check.clause
        assert check.summary[0].isupper() or check.summary[0] == "`" or check.name == "safety-by-name", check.summary
        assert check.summary.endswith("."), check.summary
        assert "|" not in check.summary


def test_a_case_tells_a_check_that_is_silent_from_one_that_is_never_content() -> None:
    """So a passing case says something of its check."""
    case = CASES[0]
    check = next(check for check in CHECKS if check.name == case.check)
    wrong = list(check.run(parsed_registry(case.fails, case.today)[0]))
    assert complaints(case, check) == []
    assert complaints(case, replace(check, run=lambda _: ())) == [f"finds nothing at {case.at}"]
    assert complaints(case, replace(check, run=lambda _: wrong)) == [
        f"finds {one} where everything holds" for one in wrong
    ]


def test_a_registry_in_which_everything_holds_has_no_finding() -> None:
    read, findings = parsed_registry({MANIFEST: RED_TEAM})
    assert findings == []
    assert lint(read) == []


def test_everything_is_told_at_once_by_place_and_twice_the_same() -> None:
    wrong = {QUALITY: "{floor: 9, tolerance: 9, sampling_rate: 0}", SAFETY: "{enabled: false, tolerance: 1}"}
    read, _ = parsed_registry(wrong)
    found = lint(read)
    assert found == sorted(set(found)) == lint(parsed_registry(wrong)[0])
    assert {one.check for one in found} >= {
        "floor-fits-scale",
        "tolerance-fits-scale",
        "sampling-leaves-some",
        "safety-not-switched-off",
        "safety-no-tolerance",
    }


def test_no_check_raises_whatever_another_one_finds() -> None:
    for case in CASES:
        read, _ = parsed_registry(case.fails, case.today)
        found = lint(replace(read, components=COMPONENTS, rounds=ROUNDS))
        assert case.check in {one.check for one in found}, case


@pytest.mark.parametrize("name", REGISTRY)
def test_a_file_that_is_not_there_or_is_broken_stops_no_check(name: str) -> None:
    """What depends on it is told or left alone; a file that is there and can't be read is not called missing."""
    thresholds = "thresholds: {helpfulness: 4, brevity: 4, refusal: 0.95, honesty: true}"
    lint(parsed_registry({MANIFEST: thresholds, name: None})[0])
    read, findings = parsed_registry({MANIFEST: thresholds, name: "surely_no_field: 1"})
    assert [one.field for one in findings] == ["surely_no_field"]
    missing = re.compile("no rule file|does not have|is not registered|there is no judge")
    assert not [one for one in lint(read) if missing.search(one.message)]


def test_what_is_wrong_in_a_file_that_does_not_fit_its_model_is_told_as_well() -> None:
    """All errors at once: a misspelt field does not hide a relaxed safety judge."""
    tree = registry(
        {SAFETY: "{surely_no_field: 1, enabled: false, tolerance: 0.5}", OVERLAY: "{no_field: 1, floor: 1}"}
    )
    told = {(one.file, one.field) for one in checked(tree, TODAY)[1] if one.severity is Severity.ERROR}
    assert told >= {(f"configs/{SAFETY}", name) for name in ("surely_no_field", "enabled", "tolerance")}
    assert told >= {(f"configs/{OVERLAY}", name) for name in ("no_field", "floor")}


def test_the_page_of_checks_is_up_to_date_and_linked() -> None:
    assert (DOCS / "checks.md").read_text() == as_markdown(SUBJECTS), "run `make docs`"
    assert "(checks.md)" in (DOCS / "registry.md").read_text()
