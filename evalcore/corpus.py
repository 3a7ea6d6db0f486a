"""All files of a registry, parsed: what the linter looks at and the registry is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

from evalcore.documents import FieldPath, Parsed
from evalcore.problems import Problem, Severity
from schemas.judges import RuleFile, Thresholds, VerticalRuleFile, judge_id
from schemas.manifests import JudgeSelection, ManifestBase, ManifestExtension, ManifestFile, OverridesFile
from schemas.verticals import Vertical

AnyRule = Parsed[RuleFile] | Parsed[VerticalRuleFile]


@dataclass(frozen=True)
class Corpus:
    """Judge ids are in their one spelling (`schemas.judges.judge_id`). Files that could not be read as their model are
    not here; `unread` names them as (kind, id) so that a check does not call missing what is only broken. `today` is
    given, so that the same files give the same findings."""

    today: date
    rules: Mapping[str, Parsed[RuleFile]] = field(default_factory=dict)
    vertical_rules: Mapping[tuple[str, str], Parsed[VerticalRuleFile]] = field(default_factory=dict)
    base: Parsed[ManifestBase] | None = None
    manifest: Parsed[ManifestFile] | None = None
    extensions: Mapping[str, Parsed[ManifestExtension]] = field(default_factory=dict)
    selections: Mapping[str, Parsed[JudgeSelection]] = field(default_factory=dict)
    overrides: Parsed[OverridesFile] | None = None
    verticals: frozenset[str] = frozenset()
    registrations: Mapping[str, Parsed[Vertical]] = field(default_factory=dict)
    """Of those in `verticals`."""
    unread: frozenset[tuple[str, str]] = frozenset()
    partial: Mapping[tuple[str, str], Parsed[Any]] = field(default_factory=dict)
    """Of files in `unread`: what could be read. Nothing is decided by them; they are for telling more problems."""

    @cached_property
    def manifest_thresholds(self) -> Mapping[str, Thresholds]:
        """By `judge` or `judge.dimension`, each in its one spelling; where two keys mean the same, the first counts."""
        found: dict[str, Thresholds] = {}
        for key, value in (self.manifest.model.thresholds if self.manifest else {}).items():
            judge, dot, dimension = key.partition(".")
            found.setdefault(f"{judge_id(judge)}{dot}{judge_id(dimension)}", value)
        return found

    def every_rule(self) -> Iterator[tuple[str | None, str, AnyRule]]:
        """(vertical or None, judge id, file) of central and vertical rules."""
        for judge, rule in self.rules.items():
            yield None, judge, rule
        for (vertical, judge), own in self.vertical_rules.items():
            yield vertical, judge, own


def problem(
    check: str,
    clause: str,
    parsed: Parsed[Any],
    path: FieldPath,
    message: str,
    fix: str = "",
    severity: Severity = Severity.ERROR,
) -> Problem:
    """A finding at a field of a parsed file."""
    line, column = parsed.document.at(path)
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    return Problem(parsed.document.file, line, column, name, check, message, clause, fix, severity)
