"""How many rules there are (PC5 NFR-4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from evalcore.corpus import Corpus
from evalcore.linting import Find, check
from evalcore.problems import Problem, Severity

MANY = 50


@check(
    "rules-under-fifty",
    "PC5 NFR-4",
    "Fewer than 50 rule files, over all verticals; from there on the registry's organization is reviewed.",
    Severity.WARNING,
)
def rules_under_fifty(corpus: Corpus, find: Find) -> Iterator[Problem]:
    count = len(corpus.rules) + len(corpus.vertical_rules)
    if count >= MANY:
        folders = {PurePosixPath(rule.document.file).parent for _, _, rule in corpus.every_rule()}
        folder = str(min(folders, key=lambda path: (len(path.parts), path)))
        message = f"{count} rule files: the soft limit is {MANY}"
        fix = "review how the registry is organized: which judges could be one, which are no longer used"
        yield Problem(folder, 0, 0, "", find.check, message, find.clause, fix, find.severity)


CHECKS = (rules_under_fifty,)
