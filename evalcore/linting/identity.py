"""Whether a judge's id, its file's name and the registry agree on who it is (PF-9 §5.2; PC5 FR-9)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from evalcore.corpus import Corpus
from evalcore.linting import Find, check
from evalcore.near import near_miss
from evalcore.problems import Problem
from schemas.judges import JUDGE_ID, judge_id


@check(
    "id-fits-file",
    "PF-9 §5.2",
    "The `id` in a rule file is the name of the file, in kebab or snake case.",
)
def id_fits_file(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for _, judge, rule in corpus.every_rule():
        declared = rule.model.id
        if declared is not None and judge_id(declared) != judge:
            yield find(
                rule,
                ("id",),
                f"{declared!r} is not the judge this file is named after, {judge!r}",
                f"write `id: {judge.replace('_', '-')}`, or name the file {judge_id(declared)}.yaml",
            )


@check(
    "id-is-plain",
    "PF-9 §5.2",
    "A judge's id is one word in kebab or snake case: lower case, letters first, at most 63 characters.",
)
def id_is_plain(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for _, judge, rule in corpus.every_rule():
        if not JUDGE_ID.fullmatch(judge):
            fix = "name the file with lower-case letters, digits and underscores, such as tool_compliance.yaml"
            yield find(rule, (), f"{judge!r} can't be the id of a judge", fix)
        declared = rule.model.id
        if declared is not None and (declared != declared.strip().lower() or {"-", "_"} <= set(declared)):
            fix = f"write `id: {judge.replace('_', '-')}`"
            yield find(rule, ("id",), f"{declared!r} is neither in kebab nor in snake case", fix)


@check(
    "id-once",
    "PF-9 FR-1",
    "No two files of a folder name the same judge, also not in kebab and in snake case.",
)
def id_once(corpus: Corpus, find: Find) -> Iterator[Problem]:
    seen: dict[tuple[str | None, str], str] = {}
    for vertical, _, rule in corpus.every_rule():
        file = PurePosixPath(rule.document.file)
        for name in {judge_id(file.stem), judge_id(rule.model.id or file.stem)}:
            other = seen.setdefault((vertical, name), rule.document.file)
            if other != rule.document.file:
                fix = "remove one of the two; kebab and snake case name the same judge"
                yield find(rule, ("id",), f"judge {name!r} is already declared in {other}", fix)


@check(
    "judge-is-central",
    "PF-9 §5.2, FR-1",
    "A vertical's rule file is about a judge of the central registry; verticals have no judges of their own.",
)
def judge_is_central(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for (vertical, judge), own in corpus.vertical_rules.items():
        if judge not in corpus.rules and not is_unread(corpus, judge):
            yield find(
                own,
                (),
                f"{vertical} tunes judge {judge!r}, which the central registry does not have"
                + near_miss(judge, corpus.rules),
                f"propose the judge as {judge}.yaml in the folder above, in a pull request that the platform's owners "
                "review (PF-9 §5.2, Decision 18); every vertical can use it then",
            )


def is_unread(corpus: Corpus, name: str) -> bool:
    """Whether something of that name is there and could not be read, so that it can't be called missing."""
    return any(judge_id(PurePosixPath(unread).name) == judge_id(name) for _, unread in corpus.unread)


CHECKS = (id_fits_file, id_is_plain, id_once, judge_is_central)
