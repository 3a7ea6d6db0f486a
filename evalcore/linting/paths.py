"""Names and paths in files that become paths on disk stay inside their folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from evalcore.corpus import Corpus
from evalcore.documents import FieldPath, Parsed
from evalcore.linting import Find, check
from evalcore.problems import Problem

VERTICAL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_STATEMENT = re.compile(r"\{%[-+]?\s*(?:include|extends|import|from)\b(.*?)%\}", re.DOTALL)
_QUOTED = re.compile(r"""(["'])(?P<path>.*?)\1""", re.DOTALL)
_URL = re.compile(r"https?://", re.IGNORECASE)


def escapes(path: str) -> bool:
    """Whether a path leads out of the folder it is read from, on any system."""
    path = path.strip()
    steps = [step.strip() for step in path.replace("\\", "/").split("/")]
    absolute = path.startswith(("/", "\\", "~")) or re.match(r"[A-Za-z]:|file:", path, re.IGNORECASE) is not None
    return absolute or ".." in steps


def _templates(text: str) -> Iterator[str]:
    """What a Jinja text includes, extends or imports by name."""
    for statement in _STATEMENT.finditer(text):
        yield from (quoted["path"] for quoted in _QUOTED.finditer(statement[1]))


def _names(corpus: Corpus) -> Iterator[tuple[Parsed[Any], FieldPath, str]]:
    """Names of verticals, which are names of folders."""
    for (vertical, _), own in corpus.vertical_rules.items():
        yield own, (), vertical
    files: list[Parsed[Any]] = [*corpus.extensions.values(), *corpus.selections.values()]
    for parsed in files:
        yield parsed, ("vertical",), parsed.model.vertical
    if corpus.manifest is not None:
        for name, category in corpus.manifest.model.categories.items():
            if category.vertical is not None:
                yield corpus.manifest, ("categories", name, "vertical"), category.vertical
    if corpus.overrides is not None:
        for place, entry in enumerate(corpus.overrides.model.overrides):
            if entry.vertical is not None:
                yield corpus.overrides, ("overrides", place, "vertical"), entry.vertical


@check(
    "vertical-name",
    "PF-9 §5.5",
    "A vertical's name is one plain word, since folders are named after it.",
)
def vertical_name(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for parsed, path, name in _names(corpus):
        if not VERTICAL.fullmatch(name):
            fix = "use lower-case letters, digits, hyphens and underscores"
            yield find(parsed, path, f"{name!r} can't be the name of a vertical", fix)


@check(
    "template-inside-folder",
    "PC5 §5.2",
    "Templates that a prompt includes, and reports that a calibration names as files, lie inside the repository.",
)
def template_inside_folder(corpus: Corpus, find: Find) -> Iterator[Problem]:
    fix = "name a file below the folder, without .. and without a leading slash"
    for rule in corpus.rules.values():
        for name in ("prompt", "task_introduction"):
            for template in _templates(getattr(rule.model, name)):
                if escapes(template):
                    message = f"template {template!r} leads out of the folder of templates"
                    yield find(rule, (name,), message, fix)
    for _, _, any_rule in corpus.every_rule():
        report = any_rule.model.calibration.report if any_rule.model.calibration else None
        if report is not None and not _URL.match(report) and escapes(report):
            message = f"report {report!r} leads out of the repository"
            yield find(any_rule, ("calibration", "report"), message, fix)


CHECKS = (vertical_name, template_inside_folder)
