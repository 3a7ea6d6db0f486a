"""The files of a registry, as bytes (`Tree`) and parsed (`RegistryFiles`). Pure.

The linter checks the parsed files, and the registry is built from them. `assemble` parses a tree and reports every
file that does not fit its model.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pydantic import BaseModel

from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath, Parsed
from evalcore.yaml.models import read
from schemas.checks.agreement import AgreementFile
from schemas.checks.canaries import CanaryFile
from schemas.judges import (
    Classification,
    Noise,
    NoiseFile,
    RuleFile,
    Thresholds,
    VerticalRuleFile,
    judge_id,
)
from schemas.manifests import (
    Adjudication,
    AdjudicationsFile,
    Category,
    Composite,
    GatePathsFile,
    JudgeSelection,
    ManifestBase,
    ManifestExtension,
    ManifestFile,
    OverridesFile,
)
from schemas.specs import AgentSpec
from schemas.verticals import TraceLayout, Vertical

MANIFEST: Final = "evaluation_manifest.yaml"
BASE: Final = "manifest-base.yaml"
OVERRIDES: Final = "enforcement-overrides.yaml"
GATE_PATHS: Final = "gate-paths.yaml"
NOISE: Final = "judge-noise.yaml"
ADJUDICATIONS: Final = "adjudications.yaml"
CANARIES: Final = "canaries.yaml"
EXTENSION: Final = "manifest-extension.yaml"
SELECTION: Final = "judge-selection.yaml"
AGREEMENT: Final = "agreement.yaml"
REFERENCE_SET: Final = "reference-set.jsonl"
COMPONENTS: Final = "../prompts/components"
VERTICALS: Final = "../specs/verticals"
SPECS: Final = "agent-specs"
OF_SPEC: Final = "spec:"
"""What a rule's model begins with that is a spec."""
CLAUSE: Final = "PC5 FR-9"
TOP: Final[Mapping[str, tuple[str, type[BaseModel]]]] = {
    MANIFEST: ("manifest", ManifestFile),
    BASE: ("base", ManifestBase),
    OVERRIDES: ("overrides", OverridesFile),
    GATE_PATHS: ("gate_paths", GatePathsFile),
    NOISE: ("noise", NoiseFile),
    ADJUDICATIONS: ("adjudications", AdjudicationsFile),
    CANARIES: ("canaries", CanaryFile),
}
"""Each file at the registry's top: its kind, which names its field of `RegistryFiles`, and its model."""
OF_A_VERTICAL: Final[Mapping[str, tuple[str, type[BaseModel]]]] = {
    EXTENSION: ("extension", ManifestExtension),
    SELECTION: ("selection", JudgeSelection),
    AGREEMENT: ("agreement", AgreementFile),
}
"""Each file in a vertical's folder `eval`: its kind, whose plural names its field, and its model."""


@dataclass(frozen=True)
class Tree:
    """`files`: content by name, relative to `root` with `/`: `rules/ux_quality.yaml`, `rules/receipts/ux_quality.yaml`,
    `evaluation_manifest.yaml`, `../specs/verticals/receipts/eval/judge-selection.yaml`,
    `../prompts/components/greeting.xml`. Content may end one byte past the limit for a file's size. `refused`: names of
    files that could not be opened, with the reason. `rounds`: of each vertical the categories that have had a round of
    annotation; None where no one looked."""

    root: Path
    files: Mapping[str, bytes]
    refused: Mapping[str, str] = field(default_factory=dict)
    rounds: Mapping[str, frozenset[str]] | None = None

    def shown(self, name: str) -> str:
        """Returns the file's name in findings: its path, beginning with the root as it was given."""
        return Path(os.path.normpath(self.root / name)).as_posix()

    def below(self, folder: str, suffix: str = "") -> dict[str, bytes]:
        """Returns the files below a folder by their names in findings."""
        inside = (name for name in sorted(self.files) if name.startswith(f"{folder}/") and name.endswith(suffix))
        return {self.shown(name): self.files[name] for name in inside}

    def with_file(self, name: str, content: bytes) -> Tree:
        return replace(self, files={**self.files, name: content})


@dataclass(frozen=True)
class RuleSpec:
    """The agent's spec that a rule judges by, and the hash of all that it says."""

    spec: AgentSpec
    hash: str


AnyRule = Parsed[RuleFile] | Parsed[VerticalRuleFile]


@dataclass(frozen=True)
class RegistryFiles:
    """The parsed files of a registry. Judge ids are in their one spelling (`schemas.judges.judge_id`). A file that does
    not fit its model is only in `unread`, as (kind, id), so that a check does not call it missing. `today` is given, so
    that the same files give the same findings."""

    today: date
    rules: Mapping[str, Parsed[RuleFile]] = field(default_factory=dict)
    vertical_rules: Mapping[tuple[str, str], Parsed[VerticalRuleFile]] = field(default_factory=dict)
    base: Parsed[ManifestBase] | None = None
    manifest: Parsed[ManifestFile] | None = None
    extensions: Mapping[str, Parsed[ManifestExtension]] = field(default_factory=dict)
    selections: Mapping[str, Parsed[JudgeSelection]] = field(default_factory=dict)
    agreements: Mapping[str, Parsed[AgreementFile]] = field(default_factory=dict)
    """By vertical, what the annotators of its categories have to reach."""
    rounds: Mapping[str, frozenset[str]] | None = None
    """Of each vertical the categories that have had a round of annotation; None where no one looked."""
    overrides: Parsed[OverridesFile] | None = None
    noise: Parsed[NoiseFile] | None = None
    adjudications: Parsed[AdjudicationsFile] | None = None
    gate_paths: Parsed[GatePathsFile] | None = None
    canaries: Parsed[CanaryFile] | None = None
    verticals: frozenset[str] = frozenset()
    registrations: Mapping[str, Parsed[Vertical]] = field(default_factory=dict)
    """The registration files of `verticals`."""
    components: frozenset[str] | None = None
    """The ids of the prompt components, in the one spelling of judges' ids; None where no one looked for them."""
    specs: Mapping[str, RuleSpec] = field(default_factory=dict)
    """By judge, the spec that its rule names (`evalcore.validation.with_specs`)."""
    unread: frozenset[tuple[str, str]] = frozenset()
    partial: Mapping[tuple[str, str], Parsed[Any]] = field(default_factory=dict)
    """The readable fields of files in `unread`. They decide nothing; they only give more findings."""

    @cached_property
    def manifest_thresholds(self) -> Mapping[str, Thresholds]:
        """Returns the manifest's thresholds by `judge` or `judge.dimension` in their one spelling; of two keys that
        mean the same, the first counts."""
        found: dict[str, Thresholds] = {}
        for key, value in (self.manifest.model.thresholds if self.manifest else {}).items():
            judge, dot, dimension = key.partition(".")
            found.setdefault(f"{judge_id(judge)}{dot}{judge_id(dimension)}", value)
        return found

    @property
    def categories(self) -> Mapping[str, Category]:
        """The manifest's categories; none without a manifest."""
        return self.manifest.model.categories if self.manifest else {}

    @property
    def composites(self) -> Mapping[str, Composite]:
        """The manifest's composites; none without a manifest."""
        return self.manifest.model.composites if self.manifest else {}

    @cached_property
    def layouts(self) -> Mapping[str, TraceLayout]:
        """Returns how each vertical that says so lays out its traces."""
        stated = {name: file.model.trace for name, file in self.registrations.items()}
        return {name: layout for name, layout in stated.items() if layout != TraceLayout()}

    def noise_of(self, judge: str, version: str) -> Noise | None:
        """The last measurement of a judge's noise, None where there is none of this version."""
        entries = reversed(self.noise.model.measured if self.noise else [])
        return next((one for one in entries if (judge_id(one.judge), one.judge_version) == (judge, version)), None)

    def adjudicated(self, judge: str, version: str) -> tuple[Adjudication, ...]:
        """What people said of items in the place of this version of the judge, expired or not."""
        entries = self.adjudications.model.adjudications if self.adjudications else []
        return tuple(one for one in entries if (judge_id(one.judge), one.judge_version) == (judge, version))

    def every_rule(self) -> Iterator[tuple[str | None, str, AnyRule]]:
        """Yields (vertical or None, judge id, file) of central and vertical rules."""
        for judge, rule in self.rules.items():
            yield None, judge, rule
        for (vertical, judge), own in self.vertical_rules.items():
            yield vertical, judge, own

    def tuned(
        self, classification: Classification | None = None
    ) -> Iterator[tuple[str, str, Parsed[VerticalRuleFile], RuleFile]]:
        """Yields (vertical, judge id, the vertical's file, the judge's central rule) of every vertical's file whose
        judge is central; of one classification alone where it is given."""
        for (vertical, judge), own in self.vertical_rules.items():
            rule = self.rules.get(judge)
            if rule is not None and classification in (None, rule.model.classification):
                yield vertical, judge, own, rule.model


def finding(
    check: str,
    clause: str,
    parsed: Parsed[Any],
    path: FieldPath,
    message: str,
    fix: str = "",
    severity: Severity = Severity.ERROR,
) -> Finding:
    """Makes a finding at a field of a parsed file."""
    line, column = parsed.document.at(path)
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    return Finding(parsed.document.file, line, column, name, check, message, clause, fix, severity)


def assemble(tree: Tree, today: date) -> tuple[RegistryFiles, list[Finding]]:
    """Returns all files that fit their models, and the findings about the others. A file that does not fit is
    in `unread` as (kind, id); what could be read of it is in `partial`. Kinds are rule, vertical_rule (id
    `vertical/judge`), vertical, and those of `TOP` and `OF_A_VERTICAL`."""
    assembling = _Assembling(tree)
    for name in sorted({*tree.files, *tree.refused}):
        assembling.take(name)
    return assembling.files(today), sorted(set(assembling.findings))


@dataclass
class _Assembling:
    """Parses the files of a tree one by one; `names` are the files by (kind, id)."""

    tree: Tree
    findings: list[Finding] = field(default_factory=list)
    found: dict[tuple[str, str], Parsed[Any]] = field(default_factory=dict)
    partial: dict[tuple[str, str], Parsed[Any]] = field(default_factory=dict)
    unread: set[tuple[str, str]] = field(default_factory=set)
    names: dict[tuple[str, str], str] = field(default_factory=dict)

    def files(self, today: date) -> RegistryFiles:
        top: dict[str, Any] = {kind: self.found.get((kind, "")) for kind, _ in TOP.values()}
        of_verticals: dict[str, Any] = {f"{kind}s": self.of(kind) for kind, _ in OF_A_VERTICAL.values()}
        registrations = self.of("vertical")
        return RegistryFiles(
            today=today,
            rules=self.of("rule"),
            vertical_rules={_pair(key): parsed for key, parsed in self.of("vertical_rule").items()},
            **top,
            **of_verticals,
            rounds=self.tree.rounds,
            verticals=frozenset(registrations),
            registrations=registrations,
            unread=frozenset(self.unread),
            partial=self.partial,
        )

    def take(self, name: str) -> None:
        if name.endswith(".xml"):
            return
        path = PurePosixPath(name)
        match path.parts:
            case (folder, *_) if folder == SPECS:
                return  # read where a rule names it
            case ("rules", file) if file.endswith(".yaml"):
                self.read("rule", judge_id(path.stem), RuleFile, name)
            case ("rules", vertical, file) if file.endswith(".yaml"):
                self.read("vertical_rule", f"{vertical}/{judge_id(path.stem)}", VerticalRuleFile, name)
            case ("verticals", file) if file.endswith(".yaml"):
                self.read("vertical", path.stem, Vertical, name)
                self.same(("vertical", path.stem), name, "name", path.stem, "the file's name")
            case (file,) if file in TOP:
                kind, model = TOP[file]
                self.read(kind, "", model, name)
            case (*_, vertical, "eval", file) if file in OF_A_VERTICAL and name.startswith(VERTICALS):
                kind, model = OF_A_VERTICAL[file]
                self.read(kind, vertical, model, name)
                self.same((kind, vertical), name, "vertical", vertical, "the folder's name")
            case _:
                self.misplaced(name)

    def of(self, kind: str) -> dict[str, Parsed[Any]]:
        return {key: parsed for (found, key), parsed in self.found.items() if found == kind}

    def read(self, kind: str, key: str, model: type[BaseModel], name: str) -> None:
        shown = self.tree.shown(name)
        other = self.names.setdefault((kind, key), shown)
        if name in self.tree.refused:
            message, fix = self.tree.refused[name], "make it a file that can be read, or remove it"
            self.findings.append(Finding(shown, 1, 1, "", "file-not-readable", message, CLAUSE, fix))
            self.unread.add((kind, key))
            return
        reading = read(model, shown, self.tree.files[name])
        self.findings += reading.findings
        if other != shown:
            message = f"is about the same judge as {other}; kebab and snake case name one judge"
            self.findings.append(Finding(shown, 1, 1, "", "id-once", message, "PF-9 FR-1", "remove one of the two"))
        elif reading.parsed is not None:
            self.found[kind, key] = reading.parsed
        else:
            self.unread.add((kind, key))
            if reading.partial is not None:
                self.partial[kind, key] = reading.partial

    def same(self, at: tuple[str, str], name: str, field: str, wanted: str, what: str) -> None:
        """Refuses a file in which a field that repeats the file's place says otherwise."""
        parsed = self.found.get(at) or self.partial.get(at)
        if parsed is None or getattr(parsed.model, field, wanted) == wanted:
            return
        message = f"{getattr(parsed.model, field)!r} is not {what}, {wanted!r}"
        fix = f"write '{field}: {wanted}', or move the file"
        where = parsed.document.at((field,))
        self.findings.append(
            Finding(self.tree.shown(name), *where, field, "name-fits-place", message, "PF-9 §5.5", fix)
        )
        self.unread.add(at)
        self.found.pop(at, None)

    def misplaced(self, name: str) -> None:
        """Reports a file that looks like one of ours and that nothing reads."""
        path = PurePosixPath(name)
        shown = self.tree.shown(name)
        fix = f"move it to {self.tree.shown('rules')}/<vertical>/ or remove it"
        message = "is read by nothing: rule files lie in rules/ or rules/<vertical>/"
        if path.suffix != ".yaml" or len(path.parts) == 1 or path.parts[-2] == "eval":
            wanted = path.stem.lower()
            for known in (*TOP, *OF_A_VERTICAL):
                if wanted.replace("-", "_") == known.removesuffix(".yaml").replace("-", "_"):
                    wanted = known.removesuffix(".yaml")
            message, fix = "is read by nothing, for its name", f"call it {wanted}.yaml"
        self.findings.append(Finding(shown, 1, 1, "", "misnamed-file", message, CLAUSE, fix))


def _pair(key: str) -> tuple[str, str]:
    vertical, _, judge = key.partition("/")
    return vertical, judge
