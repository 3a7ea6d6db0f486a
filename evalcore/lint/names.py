"""Checks names: judge ids, score names, verticals, and paths in files.

A judge's id, its file's name and the registry agree (PF-9 §5.2; PC5 FR-9). Names of user signals are reserved, and two
judges share no name (PF-9 R-4, AC-15). Names that become paths stay inside their folder. There are fewer than 50 rule
files (PC5 NFR-4).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any
from unicodedata import category, normalize

from evalcore.lint.check import Find, Subject
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import FieldPath, Parsed
from evalcore.yaml.suggestions import near_miss
from schemas.judges import JUDGE_ID, Milestone, judge_id
from schemas.verticals import RESERVED as RESERVED_VERTICALS

IDENTITY = Subject("Identity", "PF-9 §5.2")
NAMES = Subject("Names")
PATHS = Subject("Paths")
SIZE = Subject("Size")
RESERVED = "user_signal_"
PEOPLE = "people/"
"""What people score in an annotation queue is read under this name and the judge's."""
LEGACY = frozenset({"thumbs", "reroll"})
"""Names under which the two signals are mirrored for one release cycle (R-4)."""
WAY = (
    "choose another name; a new user signal goes through PF-9 review (R-4 reserves the prefix), not through the judge "
    "registry"
)
VERTICAL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_STATEMENT = re.compile(r"\{%[-+]?\s*(?:include|extends|import|from)\b(.*?)%\}", re.DOTALL)
_QUOTED = re.compile(r"""(["'])(?P<path>.*?)\1""", re.DOTALL)
_URL = re.compile(r"https?://", re.IGNORECASE)
MANY = 50
"""Rule files from which the registry's organization is reviewed."""


def is_reserved(name: str) -> bool:
    """Tells whether people would read the reserved prefix, also in hyphens, spaces, wide or invisible characters."""
    return _begins(name, RESERVED)


def _begins(name: str, prefix: str) -> bool:
    seen = "".join(character for character in normalize("NFKC", name) if category(character) != "Cf")
    return spelling(seen).startswith(prefix)


def spelling(name: str) -> str:
    """Returns a score's name in the one spelling by which names are compared."""
    return judge_id(name).replace(" ", "_")


def is_unread(files: RegistryFiles, name: str) -> bool:
    """Tells whether a file of that name exists and could not be read, so that it is not missing."""
    return any(judge_id(PurePosixPath(unread).name) == judge_id(name) for _, unread in files.unread)


def escapes(path: str) -> bool:
    """Tells whether a path leads out of the folder it is read from, on any system."""
    path = path.strip()
    steps = [step.strip() for step in path.replace("\\", "/").split("/")]
    absolute = path.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:|file:", path, re.IGNORECASE) is not None
    return absolute or ".." in steps


def written_names(files: RegistryFiles) -> Iterator[tuple[Parsed[Any], FieldPath, str]]:
    """Yields every name under which a judge's score, or a group of them, could be written."""
    for _, judge, rule in files.every_rule():
        yield rule, (), judge
        if rule.model.id is not None:
            yield rule, ("id",), rule.model.id
    for rule in files.rules.values():
        yield rule, ("score_name",), rule.model.score_name
        for dimension in rule.model.dimensions or {}:
            yield rule, ("dimensions", dimension), dimension
    if files.manifest is not None:
        yield from ((files.manifest, ("composites", composite), composite) for composite in files.composites)


@NAMES.error("PF-9 R-4, AC-15")
def reserved_prefix(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No judge, score name, dimension or composite begins with `user_signal_`, which is kept for users' signals, or
    with `people/`, under which people's scores stand."""
    for parsed, path, name in written_names(files):
        if is_reserved(name):
            yield find(parsed, path, f"{name!r} has the prefix user_signal_, which PF-9 R-4 reserves", WAY)
        if _begins(name, PEOPLE):
            message = f"{name!r} would be read as people's scores in an annotation queue"
            yield find(parsed, path, message, "choose a name that does not begin with people/")


@NAMES.error("PF-9 R-4")
def legacy_signal_name(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No judge or score is named `thumbs` or `reroll` while these names mirror users' signals."""
    for parsed, path, name in written_names(files):
        if judge_id(name) in LEGACY and path[:1] != ("dimensions",):
            yield find(parsed, path, f"{name!r} is the old name of a user signal and still mirrored (PF-9 R-4)", WAY)


@NAMES.error("PF-9 R-4, FR-1")
def score_name_once(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A score name belongs to one judge; it is not the id of another, nor one of its dimensions."""
    owners = {
        f"{judge}.{judge_id(dimension)}": f"{judge}.{judge_id(dimension)}"
        for judge, rule in files.rules.items()
        for dimension in rule.model.dimensions or {}
    }
    for judge, rule in files.rules.items():
        name = rule.model.score_name
        owner = owners.setdefault(spelling(name), judge)
        if owner == judge and (other := spelling(name)) in files.rules and other != judge:
            owner = other
        if owner != judge:
            message = f"{name!r} is the score name of judge {owner!r} too, or its id"
            fix = f"write a name of its own, such as `score_name: {judge}`"
            yield find(rule, ("score_name",), message, fix)


@NAMES.error("PC5 FR-6; contracts §3")
def dimension_name(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A dimension's name is one word that gates can write as `judge.dimension`, and no milestone."""
    for rule in files.rules.values():
        seen: dict[str, str] = {}
        for dimension in rule.model.dimensions or {}:
            path, name = ("dimensions", dimension), judge_id(dimension)
            if not JUDGE_ID.fullmatch(name) or name in {*Milestone, "default"}:
                fix = "use lower-case letters, digits and underscores, and no milestone's name"
                yield find(rule, path, f"{dimension!r} can't be the name of a dimension", fix)
            elif seen.setdefault(name, dimension) != dimension:
                yield find(rule, path, f"{dimension!r} and {seen[name]!r} are the same name", "rename one of the two")


@IDENTITY.error()
def id_fits_file(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """The `id` in a rule file is the name of the file, in kebab or snake case."""
    for _, judge, rule in files.every_rule():
        declared = rule.model.id
        if declared is not None and judge_id(declared) != judge:
            yield find(
                rule,
                ("id",),
                f"{declared!r} is not the judge this file is named after, {judge!r}",
                f"write `id: {judge.replace('_', '-')}`, or name the file {judge_id(declared)}.yaml",
            )


@IDENTITY.error()
def id_is_plain(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A judge's id is one word in kebab or snake case: lower case, letters first, at most 63 characters."""
    for _, judge, rule in files.every_rule():
        if not JUDGE_ID.fullmatch(judge):
            fix = "name the file with lower-case letters, digits and underscores, such as tool_compliance.yaml"
            yield find(rule, (), f"{judge!r} can't be the id of a judge", fix)
        declared = rule.model.id
        if declared is not None and (declared != declared.strip().lower() or {"-", "_"} <= set(declared)):
            fix = f"write `id: {judge.replace('_', '-')}`"
            yield find(rule, ("id",), f"{declared!r} is neither in kebab nor in snake case", fix)


@IDENTITY.error("PF-9 FR-1")
def id_once(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No two files of a folder name the same judge, also not in kebab and in snake case."""
    seen: dict[tuple[str | None, str], str] = {}
    for vertical, _, rule in files.every_rule():
        file = PurePosixPath(rule.document.file)
        for name in {judge_id(file.stem), judge_id(rule.model.id or file.stem)}:
            other = seen.setdefault((vertical, name), rule.document.file)
            if other != rule.document.file:
                fix = "remove one of the two; kebab and snake case name the same judge"
                yield find(rule, ("id",), f"judge {name!r} is already declared in {other}", fix)


@IDENTITY.error("PF-9 §5.2, FR-1")
def judge_is_central(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A vertical's rule file is about a judge of the central registry; verticals have no judges of their own."""
    for (vertical, judge), own in files.vertical_rules.items():
        if judge not in files.rules and not is_unread(files, judge):
            yield find(
                own,
                (),
                f"{vertical} tunes judge {judge!r}, which the central registry does not have"
                + near_miss(judge, files.rules),
                f"propose the judge as {judge}.yaml in the folder above, in a pull request that the platform's owners "
                "review (PF-9 §5.2, Decision 18); every vertical can use it then",
            )


def _templates(text: str) -> Iterator[str]:
    """Yields the names of what a Jinja text includes, extends or imports."""
    for statement in _STATEMENT.finditer(text):
        yield from (quoted["path"] for quoted in _QUOTED.finditer(statement[1]))


def _named_verticals(files: RegistryFiles) -> Iterator[tuple[Parsed[Any], FieldPath, str]]:
    """Yields every place that names a vertical, with the name."""
    for (vertical, _), own in files.vertical_rules.items():
        yield own, (), vertical
    named: list[Parsed[Any]] = [*files.extensions.values(), *files.selections.values()]
    for parsed in named:
        yield parsed, ("vertical",), parsed.model.vertical
    if files.manifest is not None:
        for name, category in files.manifest.model.categories.items():
            if category.vertical is not None:
                yield files.manifest, ("categories", name, "vertical"), category.vertical
    if files.overrides is not None:
        for place, entry in enumerate(files.overrides.model.overrides):
            if entry.vertical is not None:
                yield files.overrides, ("overrides", place, "vertical"), entry.vertical


@PATHS.error("PF-9 §5.5")
def vertical_name(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A vertical's name is one plain word, since folders are named after it, and none of the words that views and
    metrics use for turns of no vertical."""
    for parsed, path, name in _named_verticals(files):
        if not VERTICAL.fullmatch(name) or name in RESERVED_VERTICALS:
            fix = "use lower-case letters, digits, hyphens and underscores"
            fix += f", and none of {', '.join(sorted(RESERVED_VERTICALS))}"
            yield find(parsed, path, f"{name!r} can't be the name of a vertical", fix)


@PATHS.error("PC5 §5.2")
def template_inside_folder(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Templates that a prompt includes, and reports that a calibration names as files, lie inside the repository."""
    fix = "name a file below the folder, without .. and without a leading slash"
    for rule in files.rules.values():
        for name in ("prompt", "task_introduction"):
            for template in _templates(getattr(rule.model, name)):
                if escapes(template):
                    message = f"template {template!r} leads out of the folder of templates"
                    yield find(rule, (name,), message, fix)
    for _, _, any_rule in files.every_rule():
        report = any_rule.model.calibration.report if any_rule.model.calibration else None
        if report is not None and not _URL.match(report) and escapes(report):
            message = f"report {report!r} leads out of the repository"
            yield find(any_rule, ("calibration", "report"), message, fix)


@SIZE.warning("PC5 NFR-4")
def rules_under_fifty(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Fewer than 50 rule files, over all verticals; from there on the registry's organization is reviewed."""
    count = len(files.rules) + len(files.vertical_rules)
    if count >= MANY:
        folders = {PurePosixPath(rule.document.file).parent for _, _, rule in files.every_rule()}
        folder = str(min(folders, key=lambda path: (len(path.parts), path)))
        message = f"{count} rule files: the soft limit is {MANY}"
        fix = "review how the registry is organized: which judges could be one, which are no longer used"
        yield Finding(folder, 0, 0, "", find.check, message, find.clause, fix, find.severity)
