"""Scaffolds a vertical: chooses the files, validates the whole registry with them, then writes them."""

from __future__ import annotations

import os.path
import sys
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path

from rich.console import Console

from evalcore.manifest.resolving import resolve
from evalcore.registry import disk
from evalcore.registry.files import RegistryFiles, Tree, assemble
from evalcore.registry.judge import view
from evalcore.registry.thresholds import ThresholdTypeError
from evalcore.scaffold import Refused, Start, Wanted, scaffolded_files, start, unread
from evalcore.validation import checked
from evalcore.yaml.findings import Finding, Severity
from rampgate.ci_gate.inputs import BadFile, read_traces
from rampgate.cli.jobs.registry.findings import as_dict, show_findings
from rampgate.cli.jobs.registry.registries import root_of, tree_of
from rampgate.console import Failure, print_json
from rampgate.files import create_files
from schemas.judges import Classification


def scaffold(wanted: Wanted, configs: Path | None, dry_run: bool, as_json: bool, sample: Path | None = None) -> int:
    """Write the files of a new vertical. Exit code 1 where all exist, or the registry would not be valid with them; of
    a sample where judges can't read all of it, or the vertical's own file has an error."""
    try:
        traces = read_traces(sample) if sample is not None else {}
    except BadFile as error:
        raise Failure(f"{error}; --from takes JSON Lines, a trace in each") from error
    if sample is not None and not traces:
        raise Failure(f"no trace in {sample}: it must have one in each line")
    root = root_of(configs)
    tree, today = tree_of(root), disk.today()
    files, _ = assemble(tree, today)
    try:
        chosen = start(wanted, files)
        found = _files(chosen, files, today)
    except (Refused, ThresholdTypeError) as error:
        raise Failure(str(error)) from error
    there = {name for name in found if _path(root, name).exists() or _path(root, name).is_symlink()}
    missing = {name: text for name, text in found.items() if name not in there}
    before = checked(tree, today)[1]
    own = [one for one in before if sample is not None and one.file == tree.shown(f"verticals/{chosen.name}.yaml")]
    wrong = any(finding.severity is Severity.ERROR for finding in own)
    findings = _told_by(tree, before, missing, today)
    broken = any(finding.severity is Severity.ERROR for finding in findings)
    if missing and not broken and not dry_run:
        try:
            create_files({_path(root, name): text for name, text in missing.items()})
        except OSError as error:
            raise Failure(f"{error.filename}: can't be written: {error.strerror}; nothing was left behind") from error
    outcome = "exists" if not missing else "refused" if broken else "would_write" if dry_run else "written"
    if wrong:
        traces = {}  # without its layout they would look unreadable
    unreadable = unread(chosen, traces, files)
    _tell(root, chosen, outcome, missing, there, [*own, *findings], as_json, len(traces), unreadable)
    return int(wrong or bool(unreadable) or outcome == "refused" or (outcome == "exists" and sample is None))


def _files(chosen: Start, files: RegistryFiles, today: date) -> dict[str, str]:
    judges = [view(files, name, None) for name in chosen.judges]
    others = [
        view(files, name, None)
        for name, rule in sorted(files.rules.items())
        if rule.model.classification is Classification.QUALITY and name not in chosen.judges
    ]
    return scaffolded_files(chosen, judges, others, today)


def _told_by(tree: Tree, known: list[Finding], missing: Mapping[str, str], today: date) -> list[Finding]:
    """The findings that these files would add: errors of the registry and of its manifest, resolved anew, and the
    warnings that remain after resolving."""
    after = tree
    for name, text in missing.items():
        if name.endswith(".yaml"):  # the plan is for people, the registry never reads it
            after = after.with_file(name, text.encode())
    before = {_what(one) for one in [*known, *resolve(tree, today).findings]}
    resolved = resolve(after, today).findings
    errors = [one for one in checked(after, today)[1] if one.severity is Severity.ERROR]
    return sorted({one for one in [*errors, *resolved] if _what(one) not in before})


def _what(finding: Finding) -> tuple[str, str, str, str]:
    return finding.file, finding.field, finding.check, finding.message


def _path(root: Path, name: str) -> Path:
    return Path(os.path.normpath(root / name))


def _tell(
    root: Path,
    chosen: Start,
    outcome: str,
    missing: Mapping[str, str],
    there: Iterable[str],
    findings: list[Finding],
    as_json: bool,
    traces: int,
    unreadable: Mapping[str, Mapping[int, str]],
) -> None:
    kept = sorted(_path(root, name).as_posix() for name in there)
    if as_json:
        by_level = {
            level.value + "s": [as_dict(one) for one in findings if one.severity is level] for level in Severity
        }
        print_json(
            {
                "vertical": chosen.name,
                "outcome": outcome,
                "files": {_path(root, name).as_posix(): text for name, text in missing.items()},
                "kept": kept,
                "sample": {
                    "traces": traces,
                    "unreadable": {
                        name: {"traces": len(why), "line": min(why), "why": why[min(why)]}
                        for name, why in unreadable.items()
                    },
                },
                **by_level,
            }
        )
        return
    show_findings(findings, Console(soft_wrap=True, highlight=False))
    verb = {"written": "wrote", "would_write": "would write", "refused": "not written:"}.get(outcome, "")
    lines = [f"{verb} {_path(root, name)}" for name in missing]
    lines += [f"kept {path}, which is there already" for path in kept]
    if outcome == "exists":
        lines.append(f"vertical {chosen.name} exists already; nothing was written")
    if outcome == "refused":
        lines.append("the registry would not be valid with these files; nothing was written")
    if traces and not unreadable:
        lines.append(f"judges can read all of the {traces} traces")
    lines += [
        f"judges can't read {name} in {len(why)} of {traces} traces, first in line {min(why)}: {why[min(why)]}"
        for name, why in unreadable.items()
    ]
    if outcome == "written":
        lines += _next(chosen)
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _next(chosen: Start) -> list[str]:
    return [
        "",
        "Next:",
        f"1. Create the Opik project {chosen.project!r}, if it is not there.",
        "2. Name the categories in manifest-extension.yaml and their judges in judge-selection.yaml.",
        f"3. Give {chosen.name}'s rule files their ticket, and seeds of their own where they are higher.",
        "4. `rampgate manifest resolve`, `rampgate rules validate`, pull request.",
    ]
