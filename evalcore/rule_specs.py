"""Reads the specs that rules name by `model: spec:FILE`, from a registry's folder `agent-specs/`. Pure."""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import PurePosixPath

import evalcore.specs.live  # noqa: F401  (which registers how such a rule evaluates)
from evalcore.registry.files import CLAUSE, OF_SPEC, SPECS, RegistryFiles, RuleSpec, Tree, assemble, finding
from evalcore.specs.merging import CantInclude
from evalcore.specs.reading import read_spec, spec_hash
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import Parsed
from schemas.judges import RuleFile, ScoreType


def assembled(tree: Tree, today: date) -> tuple[RegistryFiles, list[Finding]]:
    """Returns the files of a registry as `assemble` does, each rule with the spec that it names."""
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
