"""What the manifest commands do: on files, in one process, with exit codes by contracts §5."""

from __future__ import annotations

import os.path
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from evalcore import loading
from evalcore.problems import Problem, Severity, ValidationResult
from evalcore.registry import Registry, build
from evalcore.resolving import Resolution, edited_by_hand
from evalcore.resolving import resolve as resolve_tree
from evalcore.staleness import departures, difference, same
from evalcore.tree import BASE, EXTENSION, MANIFEST, SELECTION, Tree
from evalcore.validation import checked, validate_manifest, validate_sources
from rampgate.cli.common import Failure, print_json
from rampgate.cli.findings import document, show_text, tell
from rampgate.cli.findings import show as show_findings
from rampgate.cli.manifest_view import show_category, show_difference, show_manifest
from rampgate.cli.options import Format
from rampgate.cli.registries import root_of, tree_of
from rampgate.registry_view import UnknownName, eval_config, served
from rampgate.replacing import replace_file

CLAUSE = "PF-9 §5.6"
_KEEP = "move the change into manifest-base.yaml, a prompt component or a vertical's files; or drop it with --force"


def validate(path: Path | None, configs: Path | None, format: Format, as_json: bool) -> int:
    if path is not None and not path.exists():
        raise Failure(f"{path}: no such file; name a manifest, or none for the registry's own")
    if path is None or path.is_dir():
        return tell(validate_sources(tree_of(path or root_of(configs)), loading.today()), format, as_json)
    root = root_of(configs)
    if path.name in (BASE, EXTENSION, SELECTION) or path.suffix == ".xml":
        around = [one for one in (root, *_around(path)) if one.is_dir()] if configs is None else []
        return tell(_source(path, around or [root]), format, as_json)
    beside = (path.absolute().parent / "rules").is_dir()
    try:
        result = validate_manifest(path, root=None if beside and configs is None else root)
    except OSError as error:
        raise Failure(f"{path}: can't be read: {error.strerror or error}") from error
    return tell(result, format, as_json)


def _source(path: Path, roots: list[Path]) -> ValidationResult:
    """Of a file that the manifest of one of these registries is made of. Raises Failure for any other."""
    for root in roots:
        tree = tree_of(root)
        shown = {os.path.realpath(root / name): tree.shown(name) for name in {*tree.files, *tree.refused}}
        name = shown.get(os.path.realpath(path))
        if name is not None:
            found = validate_sources(tree, loading.today()).problems
            return ValidationResult.of(path, (replace(one, file=path.as_posix()) for one in found if one.file == name))
    hint = "name the folder of its registry with --configs"
    raise Failure(f"{path}: is no manifest, and the registry in {roots[0]} is not made of it; {hint}")


def _around(path: Path) -> list[Path]:
    """Folders of registries that a file may lie in or beside."""
    ups = path.absolute().parents
    return [folder for folder in (ups[0], *(up / "configs" for up in ups)) if (folder / "rules").is_dir()]


@dataclass(frozen=True)
class Outcome:
    """`word`: unchanged or written; stale, edited or unsound where nothing was written for it."""

    word: str
    problems: tuple[Problem, ...]
    difference: str = ""

    @property
    def fails(self) -> bool:
        return self.word in ("stale", "edited", "unsound")


def resolve(configs: Path | None, check: bool, force: bool, format: Format, as_json: bool) -> int:
    root = root_of(configs)
    tree = tree_of(root)
    path = Path(tree.shown(MANIFEST))
    if MANIFEST in tree.refused:
        raise Failure(f"{path}: {tree.refused[MANIFEST]}")
    resolution = resolve_tree(tree, loading.today())
    outcome = decide(tree, resolution, check, force)
    if outcome.word == "written" and resolution.text is not None:
        _write(path, tree, resolution.text)
    return _told(path, outcome, format, as_json)


def decide(tree: Tree, resolution: Resolution, check: bool, force: bool) -> Outcome:
    """What is to be done with the manifest of a tree: `written` says that it may be."""
    if not resolution.sound or resolution.text is None:
        return Outcome("unsound", resolution.problems)
    raw = tree.files.get(MANIFEST)
    there = raw.decode(errors="replace") if raw is not None else ""
    if raw is not None and same(there, resolution.text):
        return Outcome("unchanged", resolution.problems)
    shown = tree.shown(MANIFEST)
    apart = difference(there, resolution.text, shown)
    edited = raw is not None and edited_by_hand(there)
    if not check and (force or not edited):
        return Outcome("written", resolution.problems, apart)
    if raw is None:
        fix = "run `rampgate manifest resolve`"
        found = [Problem(shown, 0, 0, "", "manifest-is-there", "is missing", CLAUSE, fix)]
    else:
        found = departures(shown, there, resolution.text, Severity.ERROR)
        found = [replace(one, fix=_KEEP) if edited else one for one in found]
    return Outcome("edited" if edited else "stale", (*found, *resolution.problems), apart)


def _write(path: Path, tree: Tree, text: str) -> None:
    try:
        if path.exists() and loading.read(path) != tree.files.get(MANIFEST):
            raise Failure(f"{path}: was changed just now; nothing is written, run the command again")
        replace_file(path, text)
    except OSError as error:
        raise Failure(f"{path}: can't be written: {error.strerror or error}") from error


def _told(path: Path, outcome: Outcome, format: Format, as_json: bool) -> int:
    result = ValidationResult.of(path, outcome.problems)
    if format is Format.GITHUB:
        show_findings(result, Format.GITHUB)
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
        if outcome.problems:
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
    root = root_of(configs)
    registry = _registry(root)
    if vertical is not None and vertical not in registry.verticals:
        raise Failure(str(UnknownName("vertical", vertical, registry.verticals)))
    if category is not None:
        try:
            answer = eval_config(registry, vertical, category)
        except UnknownName as error:
            raise Failure(str(error)) from error
        print_json(answer.model_dump(mode="json")) if as_json else show_category(answer)
        return
    found = _manifest(registry, vertical)
    print_json(found) if as_json else show_manifest(found)


def _registry(root: Path) -> Registry:
    corpus, problems = checked(tree_of(root), loading.today())
    errors = [one for one in problems if one.severity is Severity.ERROR]
    if errors:
        listed = "\n".join(f"  {one}" for one in errors[:5])
        raise Failure(f"{root}: can't be served; `rampgate manifest validate` and `rules validate` show all:\n{listed}")
    return build(corpus)


def _manifest(registry: Registry, vertical: str | None) -> dict[str, object]:
    """The manifest's own fields; beside them what fires on each category, and the judges as the vertical sees them."""
    categories = {
        name: {**declared, "fires": [judge.id for judge in registry.category(name, vertical)]}
        for name, declared in registry.manifest.get("categories", {}).items()
    }
    judges = [served(judge).model_dump(mode="json") for judge in registry.all(vertical)]
    own = {**registry.manifest, "categories": categories}
    return {"vertical": vertical, "config_hash": registry.config_hash, **own, "judges": judges}
