"""Every clause that is due names the tests that hold it, and they exist (PF-9 NFR-5)."""

from __future__ import annotations

import ast
import re

import pytest

from tests.root import ROOT
from tests.spec_clauses import CLAUSES, NOT_YET, TRIED, Due
from tests.spec_coverage import PAGE, broken, clauses_in, clauses_in_name, held

TESTS = ROOT / "tests"

ROW = re.compile(r"^\| (\S+|\S+ \d+|Step [\d.]+ box \d+|test plan \d) \| (.+?) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)
BOXES = [
    f"AgentCI Step {step} box {number}"
    for step, count in {"0.5": 6, "1": 4, "2": 6, "2.5": 4, "3": 5, "3.5": 5, "4": 4, "5": 4, "6": 6}.items()
    for number in range(1, count + 1)
]
"""The deliverables of AgentCI 2.0, as its document counts them."""
CRITERIA = [
    *(f"PC5 AC-{number}" for number in (1, 2, 5, 6, 8, 10)),
    *(f"PF-9 AC-{number}" for number in (1, 2, 3, 4, 5, 7, 8, 9, 11, 15)),
    *BOXES,
]


def rows() -> dict[str, str]:
    """Clause -> what holds it, on the committed page."""
    found: dict[str, str] = {}
    for part in PAGE.read_text().split("\n## ")[1:]:
        document = part.split("\n", 1)[0]
        found |= {f"{document} {name}": cell for name, _, cell, _ in ROW.findall(part) if name not in ("clause", "---")}
    return found


def named() -> dict[str, list[str]]:
    return {clause: re.findall(r"`([^`]+)`", cell) for clause, cell in rows().items()}


def test_the_page_has_every_clause() -> None:
    assert list(rows()) == [clause.title for clause in CLAUSES], "run `make docs`"


def test_every_test_on_the_page_exists() -> None:
    for test in {test for tests in named().values() for test in tests}:
        file, _, function = test.partition("::")
        path = (TESTS.parent if file.startswith("benchmarks/") else TESTS) / file
        assert path.is_file(), f"{test} is gone: run `make docs`"
        if function:
            functions = {node.name for node in ast.walk(ast.parse(path.read_text())) if hasattr(node, "name")}
            assert function in functions, f"{test} is gone: run `make docs`"


def test_the_page_claims_nothing_that_tests_do_not_say() -> None:
    """It may lag behind new tests; it may not say that a clause is held that is not, or is not that is."""
    really = held()
    for clause, tests in named().items():
        assert set(tests) <= set(really.get(clause, [])), f"{clause}: run `make docs`"
        assert bool(tests) is bool(really.get(clause)), f"{clause}: run `make docs`"


def test_a_clause_that_is_due_is_held() -> None:
    assert [clause for clause in CLAUSES if clause.due is Due.NOW and not held().get(clause.title)] == []


def test_an_acceptance_criterion_has_a_test_of_its_own() -> None:
    assert [one for one in CRITERIA if not any("::" in test for test in held().get(one, []))] == []


def test_every_box_of_agentci_is_a_clause() -> None:
    assert len(BOXES) == 44
    assert [clause.title for clause in CLAUSES if clause.document == "AgentCI"] == BOXES


# AgentCI Step 2 box 6.
def test_forty_tests_and_more_are_of_the_metrics() -> None:
    """Test functions, however many cases each has."""
    of = ("specs/test_correctness.py", "specs/test_path.py", "specs/test_cost.py", "trajectory/test_path_metrics.py")
    texts = [(TESTS / "unit" / "evalcore" / name).read_text() for name in of]
    assert sum(len(re.findall(r"^def test_", text, re.MULTILINE)) for text in texts) >= 40


def test_what_is_not_there_yet_is_said() -> None:
    late = [clause.title for clause in CLAUSES if clause.due is Due.LATER and not held().get(clause.title)]
    assert [rows()[title] for title in late] == ["not yet"] * len(late)
    assert "nothing" not in rows().values()


def test_a_clause_was_broken_and_the_tests_that_hold_it_noticed() -> None:
    """`make mutants` sees them fail; here stands that it looks at the tests which the page names."""
    for clause in TRIED:
        assert broken().get(clause), f"no mutant breaks {clause}"
        holding = held()[clause]
        files = {test.partition("::")[0] for test in holding}
        for mutant in broken()[clause]:
            named = [test.removeprefix("tests/") for test in mutant.tests]
            hold = [test for test in named if test in holding or test in files or test.partition("::")[0] in holding]
            assert hold, f"{clause}: none of the tests of {mutant.name!r} names the clause"


def test_what_a_mutant_breaks_is_a_clause() -> None:
    titles = {clause.title for clause in CLAUSES}
    assert set(broken()) <= titles
    assert set(NOT_YET) <= titles
    assert titles >= TRIED


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("PC5 AC-6", {"PC5 AC-6"}),
        ("(PC5 FR-8, FR-14; AC-6 and AC-10)", {"PC5 FR-8", "PC5 FR-14", "PC5 AC-6", "PC5 AC-10"}),
        ("PF-9 FR-7, §5.6, PC5 FR-13", {"PF-9 FR-7", "PF-9 §5.6", "PC5 FR-13"}),
        ("PF-9 Decisions 17 and 18, §5.10.", {"PF-9 Decision 17", "PF-9 Decision 18", "PF-9 §5.10"}),
        ("PF-9 AC-8: 4 judges and FR-2 of no one", {"PF-9 AC-8"}),
        ("PC-5's gates, PC6 FR-11, AC-1", set()),
        ("AgentCI Step 2 box 1, Step 2.5 box 3.", {"AgentCI Step 2 box 1", "AgentCI Step 2.5 box 3"}),
        ("Remediation test plan 1, test plan 3", {"Remediation test plan 1", "Remediation test plan 3"}),
        ("Remediation workflows, test plan 3", set()),
        ("AgentCI 2.0, Step 2, and AgentCI's box 3", set()),
    ],
)
def test_clauses_are_read_from_words(text: str, titles: set[str]) -> None:
    assert clauses_in(text) == titles


@pytest.mark.parametrize(
    ("name", "titles"),
    [
        ("test_pc5_ac6_a_field_is_named", {"PC5 AC-6"}),
        ("test_pf9_ac_15_is_refused", {"PF-9 AC-15"}),
        ("test_pf9_decision_18_asks", {"PF-9 Decision 18"}),
        ("test_pf9_ac8_fr2_both", {"PF-9 AC-8", "PF-9 FR-2"}),
        ("test_pc5_ac4_9_5_a_section_beside_it", {"PC5 AC-4", "PC5 §9.5"}),
        ("test_pc5_10_2_100_gates", {"PC5 §10.2"}),
        ("test_ac_4_without_a_document", set()),
    ],
)
def test_clauses_are_read_from_names(name: str, titles: set[str]) -> None:
    assert clauses_in_name(name) == titles
