"""Runs `rampgate vertical scaffold`: chooses the files, validates the whole registry with them, then writes them
(PF-9 §5.5)."""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.options import DryRunOption
from rampgate.report.findings import reasons_of
from rampgate.report.model import Reason, Report, Section

if TYPE_CHECKING:
    from evalcore.registry.files import RegistryFiles, Tree
    from evalcore.scaffold import Start
    from evalcore.yaml.findings import Finding

Texts = list[str] | None
GONE = {
    **dict.fromkeys(("--project", "--workspace"), "edit verticals/NAME.yaml once it is written"),
    **dict.fromkeys(("--archetype", "--inherits-from"), "edit manifest-extension.yaml once it is written"),
}
NEXT = (
    "1. Create the Opik project that {own} names, if it is not there.",
    "2. Name the categories in manifest-extension.yaml and their judges in judge-selection.yaml.",
    "3. Give {name}'s rule files their ticket, and seeds of their own where they are higher.",
    "4. `rampgate manifest resolve`, `rampgate rules validate`, pull request.",
)


def scaffold_report(told: Mapping[str, Any]) -> Report:
    name, outcome = told["vertical"], told["outcome"]
    verb = {"written": "wrote", "would_write": "would write", "refused": "not written"}.get(outcome, "")
    rows = [[path, verb] for path in told["files"]] + [[path, "kept, it is there already"] for path in told["kept"]]
    sample = told["sample"]
    why = [
        *reasons_of(told),
        *(
            Reason("error", f"judges can't read {field} in {one['traces']} of {sample['traces']} traces, first in line "
                   f"{one['line']}: {one['why']}")
            for field, one in sample["unreadable"].items()
        ),
    ]  # fmt: skip
    result = {
        "written": "written",
        "would_write": "planned; nothing was written",
        "refused": "the registry would not be valid with these files; nothing was written",
        "exists": "exists already; nothing was written",
    }[outcome]
    if sample["traces"] and not sample["unreadable"]:
        result += f"; judges can read all of the {sample['traces']} traces"
    sections = [Section("Files", ("File", "What"), rows)]
    if outcome == "written":
        own = next((path for path in told["files"] if path.endswith(f"verticals/{name}.yaml")), "its file")
        sections.append(Section("Next", notes=[line.format(own=own, name=name) for line in NEXT]))
    failed = outcome == "refused" or any(one.level == "error" for one in why)
    return Report(f"Vertical {name}", result, "fail" if failed else "pass", sections, why)


@command(scaffold_report, flags="configs", gone=GONE)
def scaffold(
    context: Context,
    name: Annotated[str, Argument(help="Lower-case letters, digits, _ and -, such as receipts")],
    sub_agent: Annotated[Texts, Option(help="A sub_agent_id of the vertical; default: NAME; again for more")] = None,
    category: Annotated[Texts, Option(help="A category, new or existing; again for more")] = None,
    judge: Annotated[Texts, Option(help="A quality judge to start with; again for more")] = None,
    ticket: Annotated[str | None, Option(help="The seeds' calibration_ref, such as PLT-1234")] = None,
    sample: Annotated[
        Path | None, Option("--from", help="JSON Lines of its traces: says what judges can't read in them")
    ] = None,
    dry_run: DryRunOption = False,
) -> Document:
    """Write the files a new vertical begins with: already valid, with comments that say what to fill in.

    The sub-agents join the archetype `conversation`, new categories inherit from `general_qa`: edit the files for
    other choices. It keeps existing files. Exit code 1 if all of them exist, if the registry would not be valid with
    them, or with --from if judges can't read all of the traces; with --from it's no fault that all files exist.

    Example: rampgate vertical scaffold receipts --category receipt_scan --category receipt_dispute_flow
    """
    from evalcore.registry.files import assemble
    from evalcore.registry.thresholds import ThresholdTypeError
    from evalcore.scaffold import Refused, Wanted, start, unread
    from evalcore.yaml.findings import Severity, ValidationResult
    from rampgate.ci_gate.inputs import read_traces
    from rampgate.files import create_files
    from rampgate.input_files import BadFile
    from rampgate.registry.view import validation_answer

    try:
        traces = read_traces(sample) if sample is not None else {}
    except BadFile as error:
        raise Failure(f"{error}; --from takes JSON Lines, a trace in each") from error
    if sample is not None and not traces:
        raise Failure(f"no trace in {sample}: it must have one in each line")
    root, tree, today = context.settings.configs, context.tree, context.today
    files, _ = assemble(tree, today)
    wanted = Wanted(name, tuple(sub_agent or ()), tuple(category or ()), tuple(judge or ()), ticket)
    try:
        chosen = start(wanted, files)
        found = _files(chosen, files, today)
    except (Refused, ThresholdTypeError) as error:
        raise Failure(str(error)) from error
    there = {name for name in found if _path(root, name).exists() or _path(root, name).is_symlink()}
    missing = {name: text for name, text in found.items() if name not in there}
    before = context.checked[1]
    own = [one for one in before if sample is not None and one.file == tree.shown(f"verticals/{chosen.name}.yaml")]
    wrong = any(finding.severity is Severity.ERROR for finding in own)
    findings = _added_by(tree, before, missing, today)
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
    fields = {
        "vertical": chosen.name,
        "outcome": outcome,
        "files": {_path(root, name).as_posix(): text for name, text in missing.items()},
        "kept": sorted(_path(root, name).as_posix() for name in there),
        "sample": {
            "traces": len(traces),
            "unreadable": {
                field: {"traces": len(why), "line": min(why), "why": why[min(why)]} for field, why in unreadable.items()
            },
        },
        **validation_answer(ValidationResult.of(root, [*own, *findings])),
    }
    del fields["valid"]
    fails = wrong or bool(unreadable) or outcome == "refused" or (outcome == "exists" and sample is None)
    return Document(fields, int(fails))


def _files(chosen: Start, files: RegistryFiles, today: date) -> dict[str, str]:
    from evalcore.registry.judge import view
    from evalcore.scaffold import scaffolded_files
    from schemas.judges import Classification

    judges = [view(files, name, None) for name in chosen.judges]
    others = [
        view(files, name, None)
        for name, rule in sorted(files.rules.items())
        if rule.model.classification is Classification.QUALITY and name not in chosen.judges
    ]
    return scaffolded_files(chosen, judges, others, today)


def _added_by(tree: Tree, known: list[Finding], missing: Mapping[str, str], today: date) -> list[Finding]:
    """The findings that these files would add: errors of the registry and of its manifest, resolved again, and the
    warnings that remain after resolving."""
    from evalcore.manifest.resolving import resolve
    from evalcore.validation import checked
    from evalcore.yaml.findings import Severity

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
