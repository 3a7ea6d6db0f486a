"""Validates a registry, or one file within its registry (PC5 FR-8, FR-14, AC-6, AC-10)."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any

import evalcore.remediation.status
import evalcore.specs.live  # noqa: F401  (which registers how a rule's spec evaluates)
from evalcore.lint.checks import CHECKS, lint
from evalcore.manifest.discovery import Component, components
from evalcore.manifest.sources import at_source
from evalcore.manifest.staleness import outdated
from evalcore.registry import disk
from evalcore.registry.files import (
    AGREEMENT,
    BASE,
    CLAUSE,
    COMPONENTS,
    MANIFEST,
    OF_SPEC,
    SPECS,
    TOP,
    RegistryFiles,
    RuleSpec,
    Tree,
    assemble,
    finding,
)
from evalcore.specs.merging import CantInclude
from evalcore.specs.reading import read_spec, spec_hash
from evalcore.yaml.findings import Finding, ValidationResult
from evalcore.yaml.loader import Parsed, read_yaml
from schemas.judges import JUDGE_ID, RuleFile, ScoreType, VerticalRuleFile, judge_id

ALONE = "vertical"
"""The vertical of a vertical's file that is validated outside a registry."""
MOST_PARTIAL = 25
"""Broken files whose readable fields the linter checks as well."""
MOST_LOOKS = 2_000
"""Broken files times all rule files, at most: each is checked together with all others, so that a large registry gets
fewer of them and a quick answer."""


def validate_tree(tree: Tree, today: date) -> ValidationResult:
    """Returns every finding of every file: what keeps it from being read, and what the linter finds."""
    return ValidationResult.of(tree.root, checked(tree, today)[1])


def validate_root(root: Path, today: date | None = None) -> ValidationResult:
    """Validates the registry in a folder. Raises NotADirectoryError."""
    return validate_tree(disk.read_tree(root), today or disk.today())


def validate_rule_file(path: Path, *, today: date | None = None) -> ValidationResult:
    """Validates one rule file; the result has its own findings only. A file in a registry's `rules/` is checked
    together with the files around it, whatever their state; any other file is checked alone. Raises OSError where there
    is no file."""
    path = Path(path)
    registry, name = _place(path)
    if registry is None:
        raw = disk.read(path)
        tree = Tree(path.parent, {})
        name = _name_of(raw, path.stem)
        return _of(path, tree.with_file(name, raw), name, today, alone=True)
    return _of(path, disk.read_tree(registry).with_file(name, disk.read(path)), name, today)


def validate_manifest(path: Path, *, root: Path | None = None, today: date | None = None) -> ValidationResult:
    """Validates the manifest together with the rule files (PC5 §9.1); the result has its own findings only. The rule
    files are those of `root`; without it those beside the file, else those of the default registry. Raises OSError."""
    path = Path(path)
    raw = disk.read(path)
    beside = path.absolute().parent
    registry = root or (path.parent if (beside / "rules").is_dir() else disk.default_root())
    tree = disk.read_tree(registry) if registry.is_dir() else Tree(path.parent, {})
    serves = tree.files.get(MANIFEST) == raw
    return _of(path, tree.with_file(MANIFEST, raw), MANIFEST, today, alone=not registry.is_dir(), serves=serves)


def validate_sources(tree: Tree, today: date) -> ValidationResult:
    """Validates the manifest and its sources: the base, prompt components, verticals' extensions and selections. They
    are checked together with the rule files, whose own findings are left out."""
    others = {tree.shown(name) for name in {*tree.files, *tree.refused} if name.startswith(("rules/", "verticals/"))}
    others |= {tree.shown(name) for name in TOP if name not in (MANIFEST, BASE)}
    others |= {tree.shown(name) for name in {*tree.files, *tree.refused} if name.endswith(f"/{AGREEMENT}")}
    return ValidationResult.of(tree.root, (found for found in checked(tree, today)[1] if found.file not in others))


def checked(tree: Tree, today: date) -> tuple[RegistryFiles, list[Finding]]:
    """Returns the files of a tree, and all that is wrong with it."""
    files, findings = assembled(tree, today)
    found, wrong = components(tree.below(COMPONENTS, ".xml"))
    files = replace(files, components=_ids(tree, found))
    findings += [*wrong, *_without_manifest(tree), *lint(files), *_in_partial(files)]
    return files, sorted(at_source({*findings, *_outdated(tree, files, found, wrong)}, tree, files, found))


def _ids(tree: Tree, found: Iterable[Component]) -> frozenset[str]:
    """The components' ids; of one that can't be read, which is a finding of its own, the file's name."""
    stems = (Path(file).stem for file in tree.below(COMPONENTS, ".xml"))
    return frozenset(judge_id(name) for name in (*(one.id.name for one in found), *stems))


def _of(
    path: Path, tree: Tree, name: str, today: date | None, alone: bool = False, serves: bool = False
) -> ValidationResult:
    """Returns the findings of one file of a tree, under the path that the caller gave. `alone`: nothing around the file
    is known. `serves`: it is the registry's manifest, so its sources are compared too."""
    files, findings = assembled(tree, today or disk.today())
    if alone:
        # Nothing around the file is known, so nothing can be missing there.
        around = {("manifest", ""), ("rule", judge_id(path.stem)), ("vertical", ALONE)}
        files = replace(files, unread=files.unread | around)
    else:
        files = replace(files, components=_ids(tree, components(tree.below(COMPONENTS, ".xml"))[0]))
    shown = tree.shown(name)
    found = {*findings, *lint(files), *_in_partial(files, shown)}
    if serves:
        declared, wrong = components(tree.below(COMPONENTS, ".xml"))
        found = {*at_source({*found, *_outdated(tree, files, declared, wrong)}, tree, files, declared)}
    own = (replace(finding, file=path.as_posix()) for finding in found if finding.file == shown)
    return ValidationResult.of(path, own)


def _place(path: Path) -> tuple[Path | None, str]:
    """Returns the registry of a rule file and the file's name there; (None, "") for a file outside a registry."""
    whole = path.absolute()
    if whole.parent.name == "rules":
        return Path(os.path.normpath(path.parent / "..")), f"rules/{path.name}"
    if whole.parent.parent.name == "rules":
        return Path(os.path.normpath(path.parent / "../..")), f"rules/{whole.parent.name}/{path.name}"
    return None, ""


def _name_of(raw: bytes, stem: str) -> str:
    """Returns the name that a file outside a registry would have in one: by its id, where it declares one. It counts as
    central where it has fields that no vertical may set, or no field at all."""
    document, _ = read_yaml("", raw)
    data = document.data if document is not None and isinstance(document.data, dict) else {}
    declared = data.get("id")
    judge = declared if isinstance(declared, str) and JUDGE_ID.fullmatch(judge_id(declared)) else stem
    central = {name for name, info in RuleFile.model_fields.items() if info.is_required()}
    is_central = not data or bool(set(data) & (central - set(VerticalRuleFile.model_fields)))
    return f"rules/{judge}.yaml" if is_central else f"rules/{ALONE}/{judge}.yaml"


def _outdated(
    tree: Tree, files: RegistryFiles, found: tuple[Component, ...], wrong: list[Finding]
) -> Iterable[Finding]:
    """Reports nothing while a component can't be read: what it would declare is unknown."""
    return () if wrong else outdated(tree, files, found)


def _without_manifest(tree: Tree) -> Iterable[Finding]:
    """Yields a finding where the manifest is missing, also in an empty folder: a mount that is gone is no registry
    without judges."""
    if MANIFEST not in {*tree.files, *tree.refused}:
        fix = "restore it from git, or run `rampgate manifest resolve`"
        message = "is missing: without it no judge belongs to any category"
        yield Finding(tree.shown(MANIFEST), 0, 0, "", "manifest-is-there", message, "PC5 FR-4, FR-9", fix)


def _in_partial(files: RegistryFiles, only: str | None = None) -> Iterable[Finding]:
    """Yields what the linter finds in the readable fields of files that don't fit their model: of the file `only`, or
    of some. A check that needs an unreadable field finds nothing there."""
    most = min(MOST_PARTIAL, max(1, MOST_LOOKS // (1 + len(files.rules) + len(files.vertical_rules))))
    wanted = [item for item in files.partial.items() if only in (None, item[1].document.file)]
    for (kind, key), parsed in sorted(wanted, key=lambda item: item[0])[:most]:
        with_it = _with(files, kind, key, parsed)
        if with_it is None:
            continue
        for check in CHECKS:
            try:
                yield from (found for found in check.run(with_it) if found.file == parsed.document.file)
            except (AttributeError, TypeError):
                continue


def _with(files: RegistryFiles, kind: str, key: str, parsed: Parsed[Any]) -> RegistryFiles | None:
    match kind:
        case "rule":
            return replace(files, rules={**files.rules, key: parsed})
        case "vertical_rule":
            vertical, _, judge = key.partition("/")
            return replace(files, vertical_rules={**files.vertical_rules, (vertical, judge): parsed})
        case "manifest":
            return replace(files, manifest=parsed)
        case "overrides":
            return replace(files, overrides=parsed)
        case "extension" | "selection" | "agreement":
            name = f"{kind}s"
            fields: dict[str, Any] = {name: {**getattr(files, name), key: parsed}}
            return replace(files, **fields)
    return None


def assembled(tree: Tree, today: date) -> tuple[RegistryFiles, list[Finding]]:
    """Returns the files of a registry as `assemble` does, each rule with the spec that it names by `model: spec:FILE`,
    from the registry's folder `agent-specs/`."""
    files, findings = assemble(tree, today)
    files, more = with_specs(tree, files)
    return files, sorted({*findings, *more})


def with_specs(tree: Tree, files: RegistryFiles) -> tuple[RegistryFiles, list[Finding]]:
    """Returns the files with the specs that rules name, and what is wrong with these. A rule whose spec can't be read
    is unread."""
    findings: list[Finding] = []
    specs: dict[str, RuleSpec] = {}
    without: dict[str, Parsed[RuleFile]] = {}
    for judge, parsed in files.rules.items():
        if parsed.model.model.startswith(OF_SPEC):
            found, wrong = _spec_of(tree, parsed)
            findings += wrong
            if found is not None:
                specs[judge] = found
            else:
                without[judge] = parsed
    if not specs and not without:
        return files, findings
    left: Mapping[str, Parsed[RuleFile]] = {name: one for name, one in files.rules.items() if name not in without}
    lost = {("rule", name): parsed for name, parsed in without.items()}
    partial = {**files.partial, **lost}
    return replace(files, rules=left, specs=specs, unread=files.unread | lost.keys(), partial=partial), findings


def _spec_of(tree: Tree, parsed: Parsed[RuleFile]) -> tuple[RuleSpec | None, list[Finding]]:
    def fetch(file: str, target: str) -> tuple[str, bytes]:
        included = PurePosixPath(os.path.normpath(PurePosixPath(file).parent / target)).as_posix()
        if not included.startswith(f"{SPECS}/") or included not in tree.files:
            raise CantInclude(f"there is no file {included} in the registry", f"put it into {SPECS}/")
        return included, tree.files[included]

    def refused(check: str, field: str, message: str, fix: str) -> tuple[None, list[Finding]]:
        return None, [finding(check, CLAUSE, parsed, (field,), message, fix)]

    rule, named = parsed.model, parsed.model.model.removeprefix(OF_SPEC)
    name = f"{SPECS}/{named}"
    if name not in tree.files:
        return refused(
            "no-spec", "model", f"must name a file in {SPECS}/, got {named!r}: there is none", f"write {name}"
        )
    if rule.score_type is not ScoreType.BOOLEAN:
        message = f"must be BOOLEAN for a spec, got {rule.score_type}: it holds, or it does not"
        return refused("spec-score", "score_type", message, "write BOOLEAN")
    reading = read_spec(name, tree.files[name], fetch)
    findings = [replace(one, file=tree.shown(one.file)) for one in reading.findings]
    return None if reading.spec is None else RuleSpec(reading.spec, spec_hash(reading.spec)), findings
