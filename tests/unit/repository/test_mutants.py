"""The list of mutants keeps up with the code: each finds what it is to change, and the tests that must notice."""

from __future__ import annotations

import re

import pytest

from tests.mutants.declared import Mutant, must_compile, mutants
from tests.root import ROOT

ALL = mutants()


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_what_a_mutant_changes_is_there_once_and_the_change_can_be_compiled(mutant: Mutant) -> None:
    text = mutant.applied()
    assert text != (ROOT / mutant.file).read_text()
    must_compile(mutant.file, text)


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_the_tests_that_must_notice_a_mutant_exist(mutant: Mutant) -> None:
    assert mutant.tests
    for test in mutant.tests:
        path, *names = test.split("::")
        text = (ROOT / path).read_text()
        assert re.search(r"^ *(async )?def test_", text, re.MULTILINE), f"{path} has no tests"
        for name in names:
            assert re.search(rf"^ *(async )?(def|class) {name.partition('[')[0]}\b", text, re.MULTILINE), test


def test_a_mutant_of_the_commit_rule_is_noticed_without_any_service() -> None:
    slow = [one.name for one in ALL if one.subject == "commit" for test in one.tests if "tests/unit/" not in test]
    assert not slow


def test_no_two_mutants_are_the_same() -> None:
    assert len({one.name for one in ALL}) == len(ALL)
    assert len({(one.file, one.old, one.new) for one in ALL}) == len(ALL)
