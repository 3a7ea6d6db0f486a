"""The corpus out of a registry's files, with everything that keeps a file out of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from pathlib import PurePosixPath
from typing import Any, TypeVar

from pydantic import BaseModel

from evalcore.corpus import Corpus
from evalcore.documents import Parsed
from evalcore.problems import Problem
from evalcore.reading import read
from evalcore.tree import BASE, EXTENSION, MANIFEST, OVERRIDES, SELECTION, VERTICALS, Tree
from schemas.judges import RuleFile, VerticalRuleFile, judge_id
from schemas.manifests import JudgeSelection, ManifestBase, ManifestExtension, ManifestFile, OverridesFile
from schemas.verticals import Vertical

CLAUSE = "PC5 FR-9"
ModelT = TypeVar("ModelT", bound=BaseModel)


def assemble(tree: Tree, today: date) -> tuple[Corpus, list[Problem]]:
    """All files that fit their models, and the problems of those that don't. A file that does not fit is named in the
    corpus's `unread` as (kind, id); what could be read of it is in `partial`. Kinds are rule, vertical_rule (id
    `vertical/judge`), manifest, base, extension, selection, overrides and vertical."""
    assembling = _Assembling(tree)
    for name in sorted({*tree.files, *tree.refused}):
        assembling.take(name)
    return assembling.corpus(today), sorted(set(assembling.problems))


@dataclass
class _Assembling:
    tree: Tree
    problems: list[Problem] = field(default_factory=list)
    found: dict[tuple[str, str], Parsed[Any]] = field(default_factory=dict)
    partial: dict[tuple[str, str], Parsed[Any]] = field(default_factory=dict)
    unread: set[tuple[str, str]] = field(default_factory=set)
    names: dict[tuple[str, str], str] = field(default_factory=dict)

    def corpus(self, today: date) -> Corpus:
        found = self.found
        return Corpus(
            today=today,
            rules={key: parsed for (kind, key), parsed in found.items() if kind == "rule"},
            vertical_rules={_pair(key): parsed for (kind, key), parsed in found.items() if kind == "vertical_rule"},
            base=found.get(("base", "")),
            manifest=found.get(("manifest", "")),
            extensions={key: parsed for (kind, key), parsed in found.items() if kind == "extension"},
            selections={key: parsed for (kind, key), parsed in found.items() if kind == "selection"},
            overrides=found.get(("overrides", "")),
            verticals=frozenset(key for kind, key in found if kind == "vertical"),
            registrations={key: parsed for (kind, key), parsed in found.items() if kind == "vertical"},
            unread=frozenset(self.unread),
            partial=self.partial,
        )

    def take(self, name: str) -> None:
        if name.endswith(".xml"):
            return
        path = PurePosixPath(name)
        match path.parts:
            case ("rules", file) if file.endswith(".yaml"):
                self.read("rule", judge_id(path.stem), RuleFile, name)
            case ("rules", vertical, file) if file.endswith(".yaml"):
                self.read("vertical_rule", f"{vertical}/{judge_id(path.stem)}", VerticalRuleFile, name)
            case ("verticals", file) if file.endswith(".yaml"):
                self.read("vertical", path.stem, Vertical, name)
                self.same(("vertical", path.stem), name, "name", path.stem, "the file's name")
            case (file,) if file == MANIFEST:
                self.read("manifest", "", ManifestFile, name)
            case (file,) if file == BASE:
                self.read("base", "", ManifestBase, name)
            case (file,) if file == OVERRIDES:
                self.read("overrides", "", OverridesFile, name)
            case (*_, vertical, "eval", file) if file == EXTENSION and name.startswith(VERTICALS):
                self.read("extension", vertical, ManifestExtension, name)
                self.same(("extension", vertical), name, "vertical", vertical, "the folder's name")
            case (*_, vertical, "eval", file) if file == SELECTION and name.startswith(VERTICALS):
                self.read("selection", vertical, JudgeSelection, name)
                self.same(("selection", vertical), name, "vertical", vertical, "the folder's name")
            case _:
                self.misplaced(name)

    def read(self, kind: str, key: str, model: type[ModelT], name: str) -> None:
        shown = self.tree.shown(name)
        other = self.names.setdefault((kind, key), shown)
        if name in self.tree.refused:
            message, fix = self.tree.refused[name], "make it a file that can be read, or remove it"
            self.problems.append(Problem(shown, 1, 1, "", "file-not-readable", message, CLAUSE, fix))
            self.unread.add((kind, key))
            return
        reading = read(model, shown, self.tree.files[name])
        self.problems += reading.problems
        if other != shown:
            message = f"is about the same judge as {other}; kebab and snake case name one judge"
            self.problems.append(Problem(shown, 1, 1, "", "id-once", message, "PF-9 FR-1", "remove one of the two"))
        elif reading.parsed is not None:
            self.found[kind, key] = reading.parsed
        else:
            self.unread.add((kind, key))
            if reading.partial is not None:
                self.partial[kind, key] = reading.partial

    def same(self, at: tuple[str, str], name: str, field: str, wanted: str, what: str) -> None:
        """A field that repeats what the file's place says."""
        parsed = self.found.get(at) or self.partial.get(at)
        if parsed is None or getattr(parsed.model, field, wanted) == wanted:
            return
        message = f"{getattr(parsed.model, field)!r} is not {what}, {wanted!r}"
        fix = f"write '{field}: {wanted}', or move the file"
        where = parsed.document.at((field,))
        self.problems.append(
            Problem(self.tree.shown(name), *where, field, "name-fits-place", message, "PF-9 §5.5", fix)
        )
        self.unread.add(at)
        self.found.pop(at, None)

    def misplaced(self, name: str) -> None:
        """A file that looks like one of ours and is read by nothing."""
        path = PurePosixPath(name)
        shown = self.tree.shown(name)
        fix = f"move it to {self.tree.shown('rules')}/<vertical>/ or remove it"
        message = "is read by nothing: rule files lie in rules/ or rules/<vertical>/"
        if path.suffix != ".yaml" or len(path.parts) == 1 or path.parts[-2] == "eval":
            wanted = path.stem.lower()
            for known in (MANIFEST, BASE, OVERRIDES, EXTENSION, SELECTION):
                if wanted.replace("-", "_") == known.removesuffix(".yaml").replace("-", "_"):
                    wanted = known.removesuffix(".yaml")
            message, fix = "is read by nothing, for its name", f"call it {wanted}.yaml"
        self.problems.append(Problem(shown, 1, 1, "", "misnamed-file", message, CLAUSE, fix))


def _pair(key: str) -> tuple[str, str]:
    vertical, _, judge = key.partition("/")
    return vertical, judge
