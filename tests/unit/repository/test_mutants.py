"""The list of mutants keeps up with the code: each finds what it is to change, and the tests that must notice."""

from __future__ import annotations

import re

from tests.mutants.declared import must_compile, mutants
from tests.root import ROOT

ALL = mutants()


def test_what_a_mutant_changes_is_there_once_and_the_change_can_be_compiled() -> None:
    wrong = {}
    for mutant in ALL:
        try:
            text = mutant.applied()
            must_compile(mutant.file, text)
        except Exception as error:  # all of them are named, not the first alone
            wrong[mutant.name] = str(error)
        else:
            if text == (ROOT / mutant.file).read_text():
                wrong[mutant.name] = "changes nothing"
    assert wrong == {}


def test_the_tests_that_must_notice_a_mutant_exist() -> None:
    missing = [f"{mutant.name}: no test" for mutant in ALL if not mutant.tests]
    for mutant in ALL:
        for test in mutant.tests:
            path, *names = test.split("::")
            text = (ROOT / path).read_text() if (ROOT / path).exists() else ""
            if not re.search(r"^ *(async )?def test_", text, re.MULTILINE):
                missing.append(f"{mutant.name}: {path} has no tests")
            for name in names:
                if not re.search(rf"^ *(async )?(def|class) {name.partition('[')[0]}\b", text, re.MULTILINE):
                    missing.append(f"{mutant.name}: {test}")
    assert missing == []


def test_a_mutant_of_the_commit_rule_is_noticed_without_any_service() -> None:
    slow = [one.name for one in ALL if one.subject == "commit" for test in one.tests if "tests/unit/" not in test]
    assert not slow


def test_no_two_mutants_are_the_same() -> None:
    assert len({one.name for one in ALL}) == len(ALL)
    assert len({(one.file, one.old, one.new) for one in ALL}) == len(ALL)
