"""Validates, resolves, shows and syncs the manifest, with exit codes by contracts §5."""

from __future__ import annotations

import os.path
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from evalcore.manifest.resolving import Resolution, edited_by_hand
from evalcore.manifest.resolving import resolve as resolve_tree
from evalcore.manifest.staleness import departures, difference, same
from evalcore.registry import disk
from evalcore.registry.files import BASE, EXTENSION, MANIFEST, SELECTION, Tree
from evalcore.registry.registry import Registry, build
from evalcore.validation import checked, validate_manifest, validate_sources
from evalcore.yaml.findings import Finding, Severity, ValidationResult
from rampgate.cli.jobs.registry.findings import as_dict, document, show_findings, show_text, tell
from rampgate.cli.jobs.registry.findings import show as show_result
from rampgate.cli.jobs.registry.registries import root_of, tree_of
from rampgate.cli.jobs.registry.rule_view import seen_by, show_judges
from rampgate.cli.jobs.registry.rules import SyncAsked, chosen, progress_console, sync_rules
from rampgate.console import Failure, Format, plain, print_json, run
from rampgate.files import replace_file, writing
from rampgate.registry.dataset_check import DatasetCheck, look
from rampgate.registry.verticals import load_verticals
from rampgate.registry.view import UnknownName, eval_config, require_vertical, served
from rampgate.settings import Settings
from rampgate.tables import make_table
from schemas.answers import ServedJudge

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
CLAUSE = "PF-9 §5.6"
_KEEP = "move the change into manifest-base.yaml, a prompt component or a vertical's files; or drop it with --force"


def show_difference(text: str) -> None:
    console = Console(soft_wrap=True, highlight=False, file=sys.stdout)
    for line in text.splitlines():
        colour = _COLOURS.get(line[:1])
        said = plain(line, 2_000)
        console.print(f"[{colour}]{said}[/]" if colour else said)


def show_manifest(found: Mapping[str, Any], judges: Sequence[ServedJudge]) -> None:
    dataset = found.get("dataset", {})
    title = f"Dataset {dataset.get('name')}, version {dataset.get('version')}, {dataset.get('items')} items"
    table = make_table(plain(title), "Category", "Of", "Fires")
    for name, category in found["categories"].items():
        table.add_row(plain(name), plain(category.get("vertical") or "all"), plain(", ".join(category["fires"]), 1_000))
    Console().print(table)
    show_judges(judges, f"Judges {seen_by(found['vertical'])}, registry {found['config_hash']}", disk.today())


def validate(path: Path | None, configs: Path | None, format: Format, as_json: bool, metrics_file: Path | None) -> int:
    """Report every finding of a manifest, or of all that the registry's is made of. Exit code 1 for an error."""
    return tell(_found(path, configs), format, as_json, metrics_file)


def _found(path: Path | None, configs: Path | None) -> ValidationResult:
    if path is not None and not path.exists():
        raise Failure(f"{path}: no such file; name a manifest, or none for the registry's own")
    if path is None or path.is_dir():
        return validate_sources(tree_of(path or root_of(configs)), disk.today())
    root = root_of(configs)
    if path.name in (BASE, EXTENSION, SELECTION) or path.suffix == ".xml":
        around = [one for one in (root, *_around(path)) if one.is_dir()] if configs is None else []
        return _source(path, around or [root])
    beside = (path.absolute().parent / "rules").is_dir()
    try:
        return validate_manifest(path, root=None if beside and configs is None else root)
    except OSError as error:
        raise Failure(f"{path}: can't be read: {error.strerror or error}") from error


def _source(path: Path, roots: list[Path]) -> ValidationResult:
    """The findings in a file that is a source of one of these registries' manifests. Raises Failure for another
    file."""
    for root in roots:
        tree = tree_of(root)
        shown = {os.path.realpath(root / name): tree.shown(name) for name in {*tree.files, *tree.refused}}
        name = shown.get(os.path.realpath(path))
        if name is not None:
            found = validate_sources(tree, disk.today()).findings
            return ValidationResult.of(path, (replace(one, file=path.as_posix()) for one in found if one.file == name))
    hint = "name the folder of its registry with --configs"
    raise Failure(f"{path}: is no manifest, and the registry in {roots[0]} is not made of it; {hint}")


def _around(path: Path) -> list[Path]:
    """Folders of registries that may contain the file, or that it may be beside."""
    ups = path.absolute().parents
    return [folder for folder in (ups[0], *(up / "configs" for up in ups)) if (folder / "rules").is_dir()]


@dataclass(frozen=True)
class Outcome:
    """The outcome of `resolve`: `word` is unchanged or written; or stale, edited or unsound, and then nothing is
    written."""

    word: str
    findings: tuple[Finding, ...]
    difference: str = ""

    @property
    def fails(self) -> bool:
        return self.word in ("stale", "edited", "unsound")


def resolve(configs: Path | None, check: bool, force: bool, format: Format, as_json: bool) -> int:
    """Write the manifest that its sources declare. Exit code 1 where it must not, or --check finds it out of date."""
    root = root_of(configs)
    tree = tree_of(root)
    path = Path(tree.shown(MANIFEST))
    if MANIFEST in tree.refused:
        raise Failure(f"{path}: {tree.refused[MANIFEST]}")
    resolution = resolve_tree(tree, disk.today())
    outcome = decide(tree, resolution, check, force)
    if outcome.word == "written" and resolution.text is not None:
        _write(path, tree, resolution.text)
    return _told(path, outcome, format, as_json)


def decide(tree: Tree, resolution: Resolution, check: bool, force: bool) -> Outcome:
    """Decide what to do with the manifest of a tree; `written` means that the caller may write it."""
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


def _write(path: Path, tree: Tree, text: str) -> None:
    with writing(path):
        if path.exists() and disk.read(path) != tree.files.get(MANIFEST):
            raise Failure(f"{path}: was changed just now; nothing is written, run the command again")
        replace_file(path, text)


def _told(path: Path, outcome: Outcome, format: Format, as_json: bool) -> int:
    result = ValidationResult.of(path, outcome.findings)
    if format is Format.GITHUB:
        show_result(result, Format.GITHUB)
    if as_json or format is Format.JSON:
        print_json(
            {
                "manifest": path.as_posix(),
                "outcome": outcome.word,
                "difference": outcome.difference,
                **document(result),
            }
        )
    elif format is Format.TEXT:
        show_difference(outcome.difference)
        if outcome.findings:
            show_text(result)
        sys.stdout.write(f"{_said(path, outcome.word)}\n")
    return 1 if outcome.fails else 0


def _said(path: Path, word: str) -> str:
    return {
        "unchanged": f"{path}: is what its sources give",
        "written": f"{path}: written",
        "stale": f"{path}: is not what its sources give; run `rampgate manifest resolve`, commit what it writes",
        "edited": f"{path}: was edited by hand and is left as it is; {_KEEP}",
        "unsound": f"{path}: left as it is; what is declared holds an error",
    }[word]


def show(vertical: str | None, category: str | None, configs: Path | None, as_json: bool) -> None:
    """Show the manifest as the registry serves it, or the judges of one category. Raises Failure."""
    root = root_of(configs)
    registry = _registry(root)
    if vertical is not None:
        require_vertical(vertical, registry.verticals)
    if category is not None:
        try:
            answer = eval_config(registry, vertical, category)
        except UnknownName as error:
            raise Failure(str(error)) from error
        title = f"{category}, {seen_by(vertical)}: manifest {answer.manifest_version}, registry {answer.config_hash}"
        print_json(answer.model_dump(mode="json")) if as_json else show_judges(answer.judges, title, disk.today())
        return
    judges = [served(judge) for judge in registry.all(vertical)]
    found = _manifest(registry, vertical, judges)
    print_json(found) if as_json else show_manifest(found, judges)


def _registry(root: Path) -> Registry:
    files, findings = checked(tree_of(root), disk.today())
    errors = [one for one in findings if one.severity is Severity.ERROR]
    if errors:
        listed = "\n".join(f"  {one}" for one in errors[:5])
        raise Failure(f"{root}: can't be served; `rampgate manifest validate` and `rules validate` show all:\n{listed}")
    return build(files)


def _manifest(registry: Registry, vertical: str | None, judges: Sequence[ServedJudge]) -> dict[str, object]:
    """The document of `manifest show`: the manifest's fields, what fires on each category, and the judges."""
    categories = {
        name: {**declared, "fires": [judge.id for judge in registry.category(name, vertical)]}
        for name, declared in registry.manifest.get("categories", {}).items()
    }
    own = {**registry.manifest, "categories": categories}
    return {
        "vertical": vertical,
        "config_hash": registry.config_hash,
        **own,
        "judges": [judge.model_dump(mode="json") for judge in judges],
    }


def sync(settings: Settings, asked: SyncAsked) -> int:
    """Sync all judges, because their copies in Opik carry the manifest's thresholds (PC5 §5.7 step 3, FR-10).

    The dataset belongs to its owner: the command compares it and never writes it. A difference in the dataset, and a
    manifest that differs from its sources, are warnings. The exit code is that of `rules sync`.
    """
    chosen(settings, asked.vertical)
    tree = tree_of(settings.configs)
    files, findings = checked(tree, disk.today())
    if files.manifest is None or any(one.severity is Severity.ERROR for one in findings):
        return sync_rules(settings, asked)
    manifest, verticals = files.manifest, list(load_verticals(settings.configs).values())
    found: DatasetCheck = run(lambda: look(settings, manifest, verticals, asked.vertical))
    about = [one for one in findings if one.file == manifest.document.file]
    warnings = ValidationResult.of(settings.configs, [*about, *found.findings])
    if not asked.as_json:
        console = progress_console(False)
        show_findings(warnings.findings, console)
        if found.error is not None:
            console.print(f"dataset {found.wanted.name}: can't be looked up: {found.error}", markup=False)
        elif not found.findings:
            console.print(f"dataset {found.wanted.name}: as the manifest says", markup=False)
    told = {"dataset": found.document(), "warnings": [as_dict(one) for one in warnings.findings]}
    return sync_rules(settings, replace(asked, beside=told))
