"""Runs `rampgate manifest validate`, `resolve`, `show` and `sync` (contracts §5)."""

from __future__ import annotations

import os.path
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rampgate.command import Context, Document, command, read_tree
from rampgate.commands.rule_sync import FLAGS, SECONDS, chosen, sync_report, synced
from rampgate.commands.rules import FINDINGS, VerticalOption, judges_section, seen_by, validated
from rampgate.console import Failure
from rampgate.options import DryRunOption, YesOption
from rampgate.options import VerticalOption as OnlyVerticalOption
from rampgate.report.findings import reasons_of, validation_report
from rampgate.report.model import Passage, Report, Section

if TYPE_CHECKING:
    from evalcore.manifest.resolving import Resolution
    from evalcore.registry.files import Tree
    from evalcore.yaml.findings import Finding, ValidationResult

Told = Mapping[str, Any]
CLAUSE = "PF-9 §5.6"
_KEEP = "move the change into manifest-base.yaml, a prompt component or a vertical's files; or drop it with --force"
_SAID = {
    "unchanged": "is what its sources give",
    "written": "written",
    "stale": "is not what its sources give; run `rampgate manifest resolve`, commit what it writes",
    "edited": f"was edited by hand and is left as it is; {_KEEP}",
    "unsound": "left as it is; what is declared holds an error",
}
_FAILS = ("stale", "edited", "unsound")


@command(validation_report, flags="configs metrics_file", metrics=FINDINGS)
def validate(
    context: Context,
    path: Annotated[
        Path | None,
        Argument(
            help="A manifest, checked with the rule files beside it, else with the registry's; a source file of it; "
            "or a registry's folder. Default: the registry's manifest and all its sources"
        ),
    ] = None,
) -> Document:
    """Show every finding of the manifest, with place, rule and remedy. Exit code 1 for an error.

    A manifest that differs from its sources is a warning here: you may keep it by hand.

    Example: rampgate manifest validate --report github
    """
    return validated(context, _found(path, context))


def _found(path: Path | None, context: Context) -> ValidationResult:
    from evalcore.registry.files import BASE, EXTENSION, SELECTION
    from evalcore.validation import validate_manifest, validate_sources

    if path is not None and not path.exists():
        raise Failure(f"{path}: no such file; name a manifest, or none for the registry's own")
    if path is None or path.is_dir():
        return validate_sources(read_tree(path or context.settings.configs), context.today)
    root, named = context.settings.configs, context.given.get("configs") is not None
    if path.name in (BASE, EXTENSION, SELECTION) or path.suffix == ".xml":
        around = [one for one in (root, *_around(path)) if one.is_dir()] if not named else []
        return _source(path, around or [root], context)
    beside = (path.absolute().parent / "rules").is_dir()
    return validate_manifest(path, root=None if beside and not named else root)


def _source(path: Path, roots: list[Path], context: Context) -> ValidationResult:
    """The findings in a file that is a source of one of these registries' manifests. Raises Failure for another
    file."""
    from evalcore.validation import validate_sources
    from evalcore.yaml.findings import ValidationResult

    for root in roots:
        tree = read_tree(root)
        shown = {os.path.realpath(root / name): tree.shown(name) for name in {*tree.files, *tree.refused}}
        name = shown.get(os.path.realpath(path))
        if name is not None:
            found = validate_sources(tree, context.today).findings
            return ValidationResult.of(path, (replace(one, file=path.as_posix()) for one in found if one.file == name))
    hint = "name the folder of its registry with --configs"
    raise Failure(f"{path}: is no manifest, and the registry in {roots[0]} is not made of it; {hint}")


def _around(path: Path) -> list[Path]:
    """Folders of registries that may contain the file, or that it may be beside."""
    ups = path.absolute().parents
    return [folder for folder in (ups[0], *(up / "configs" for up in ups)) if (folder / "rules").is_dir()]


def resolve_report(told: Told) -> Report:
    apart = told["difference"]
    tone = "fail" if told["outcome"] in _FAILS else "warn" if told["warnings"] else "pass"
    sections = [Section("", ("Difference",), [[Passage(apart)]])] if apart else []
    return Report(told["manifest"], _SAID[told["outcome"]], tone, sections, reasons_of(told))


@command(resolve_report, flags="configs")
def resolve(
    context: Context,
    check: Annotated[bool, Option("--check", help="Write nothing; exit code 1 if the file is out of date")] = False,
    force: Annotated[bool, Option("--force", help="Overwrite a manifest that was edited by hand")] = False,
) -> Document:
    """Write the manifest that manifest-base.yaml, the prompt components and the verticals' files declare.

    It shows a hand edit and does not overwrite it. Exit code 1 for a hand edit, or an error in the sources.

    Example: rampgate manifest resolve --check
    """
    from evalcore.manifest.resolving import resolve as resolve_tree
    from evalcore.registry import disk
    from evalcore.registry.files import MANIFEST
    from evalcore.yaml.findings import ValidationResult
    from rampgate.files import replace_file
    from rampgate.registry.view import validation_answer

    tree = context.tree
    path = Path(tree.shown(MANIFEST))
    if MANIFEST in tree.refused:
        raise Failure(f"{path}: {tree.refused[MANIFEST]}")
    resolution = resolve_tree(tree, context.today)
    outcome = decide(tree, resolution, check, force)
    if outcome.word == "written" and resolution.text is not None:
        if path.exists() and disk.read(path) != tree.files.get(MANIFEST):
            raise Failure(f"{path}: was changed just now; nothing is written, run the command again")
        replace_file(path, resolution.text)
    found = validation_answer(ValidationResult.of(path, outcome.findings))
    fields = {"manifest": path.as_posix(), "outcome": outcome.word, "difference": outcome.difference, **found}
    return Document(fields, 1 if outcome.word in _FAILS else 0)


@dataclass(frozen=True)
class Outcome:
    """The outcome of `resolve`: `word` is unchanged or written; or stale, edited or unsound, and then nothing is
    written."""

    word: str
    findings: tuple[Finding, ...]
    difference: str = ""


def decide(tree: Tree, resolution: Resolution, check: bool, force: bool) -> Outcome:
    """Decide what to do with the manifest of a tree; `written` means that the caller may write it."""
    from evalcore.manifest.resolving import edited_by_hand
    from evalcore.manifest.staleness import departures, difference, same
    from evalcore.registry.files import MANIFEST
    from evalcore.yaml.findings import Finding, Severity

    if not resolution.sound or resolution.text is None:
        return Outcome("unsound", resolution.findings)
    raw = tree.files.get(MANIFEST)
    there = raw.decode(errors="replace") if raw is not None else ""
    if raw is not None and same(there, resolution.text):
        return Outcome("unchanged", resolution.findings)
    shown = tree.shown(MANIFEST)
    apart = difference(there, resolution.text, shown)
    edited = raw is not None and edited_by_hand(there)
    if not check and (force or not edited):
        return Outcome("written", resolution.findings, apart)
    if raw is None:
        fix = "run `rampgate manifest resolve`"
        found = [Finding(shown, 0, 0, "", "manifest-is-there", "is missing", CLAUSE, fix)]
    else:
        found = departures(shown, there, resolution.text, Severity.ERROR)
        found = [replace(one, fix=_KEEP) if edited else one for one in found]
    return Outcome("edited" if edited else "stale", (*found, *resolution.findings), apart)


def show_report(told: Told) -> Report:
    dataset, categories = told.get("dataset", {}), told["categories"]
    rows = [[name, one.get("vertical") or "all", ", ".join(one["fires"])] for name, one in categories.items()]
    about = f"Dataset {dataset.get('name')}, version {dataset.get('version')}, {dataset.get('items')} items"
    judges = judges_section(told["judges"], told["today"], f"Judges {seen_by(told['vertical'])}")
    sections = [Section(about, ("Category", "Of", "Fires"), rows), judges]
    return Report(f"Registry {told['config_hash']}", f"{len(rows)} categories", "pass", sections)


@command(
    show_report, flags="configs", gone={"--category": "`rampgate rules list --category CATEGORY` lists its judges"}
)
def show(context: Context, vertical: VerticalOption = None) -> Document:
    """Show the manifest as the registry serves it: the judges of each category, safety judges too, and thresholds.

    Example: rampgate manifest show --vertical receipts
    """
    from rampgate.registry.view import require_vertical, served

    registry = context.registry
    if vertical is not None:
        require_vertical(vertical, registry.verticals)
    categories = {
        name: {**declared, "fires": [judge.id for judge in registry.category(name, vertical)]}
        for name, declared in registry.manifest.get("categories", {}).items()
    }
    own = {**registry.manifest, "categories": categories}
    judges = [served(judge).model_dump(mode="json") for judge in registry.all(vertical)]
    about = {"vertical": vertical, "config_hash": registry.config_hash, "today": context.today.isoformat()}
    return Document({**about, **own, "judges": judges})


@command(sync_report, flags=FLAGS, metrics=SECONDS)
async def sync(
    context: Context, vertical: OnlyVerticalOption = None, yes: YesOption = False, dry_run: DryRunOption = False
) -> Document:
    """Bring a changed manifest to Opik by `rules sync` of all judges, whose copies there carry its thresholds.

    It compares the dataset with the one in Opik (version, items, categories) and never writes it, since it is its
    owner's; a difference, and a manifest that differs from its sources, are warnings (PC5 §5.7 step 3, FR-10). Exit
    codes are those of `rules sync`.

    Example: rampgate manifest sync --vertical receipts --yes
    """
    from evalcore.yaml.findings import Severity
    from rampgate.registry.dataset_check import look
    from rampgate.registry.view import documents

    chosen(context, vertical)
    files, findings = context.checked
    manifest = files.manifest
    if manifest is None or any(one.severity is Severity.ERROR for one in findings):
        return await synced(context, vertical, yes, dry_run)
    found = await look(context.settings, manifest, [*context.verticals.values()], vertical)
    about = [one for one in findings if one.file == manifest.document.file]
    beside = {"dataset": found.document(), "warnings": documents(sorted({*about, *found.findings}))}
    return await synced(context, vertical, yes, dry_run, beside=beside)
