"""Validates rule files, lists the judges and compares them with a version in git; exit codes by contracts §5."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from evalcore.registry import disk
from evalcore.registry.files import AGREEMENT, EXTENSION, MANIFEST, SELECTION, Tree
from evalcore.registry.registry import Judge, build
from evalcore.registry.rule_diff import changes
from evalcore.validation import checked, validate_manifest, validate_rule_file, validate_tree
from evalcore.yaml.findings import Finding, Severity, ValidationResult
from rampgate.cli.jobs.registry.findings import tell
from rampgate.cli.jobs.registry.registries import absolute, read_registry, registry_of, root_of, tree_of
from rampgate.cli.jobs.registry.rule_view import seen_by, show_changes, show_judges
from rampgate.console import Failure, Format, print_json
from rampgate.limits.rounds import with_rounds
from rampgate.registry.metrics import every_view
from rampgate.registry.rule_history import commit_of, tree_at
from rampgate.registry.view import UnknownName, eval_config, require_vertical, served
from schemas.counting import counted
from schemas.judges import Classification, judge_id

YAML = (".yaml", ".yml")


def validate(paths: list[Path], configs: Path | None, format: Format, as_json: bool, metrics_file: Path | None) -> int:
    """Report every finding of the paths, or of the registry. Exit code 1 for an error. Raises Failure for missing
    paths."""
    if missing := [str(path) for path in paths if not path.exists()]:
        raise Failure(f"{', '.join(missing)}: no such file or folder")
    if paths:
        found = [finding for path in paths for finding in _of_path(path)]
        result = ValidationResult.of(paths[0] if len(paths) == 1 else Path(f"{len(paths)} paths"), found)
    else:
        result = validate_tree(with_rounds(tree_of(root_of(configs))), disk.today())
    return tell(result, format, as_json, metrics_file)


def _of_path(path: Path) -> list[Finding]:
    registry = registry_of(path)
    if path.is_dir():
        if registry is not None:
            return _below(registry, path)
        files = sorted(file for file in path.rglob("*") if file.suffix in YAML and file.is_file())
        if not files:
            raise Failure(f"{path}: holds no rule files; name a registry's folder, its rules/, or a rule file")
        return [finding for file in files for finding in _of_path(file)]
    if path.name == AGREEMENT:
        raise Failure(f"{path}: is no rule file; `rampgate rules validate` without a path checks it, too")
    if path.name in (EXTENSION, SELECTION) or path.suffix == ".xml":
        raise Failure(f"{path}: is no rule file; `rampgate manifest validate {path}` is about it")
    try:
        if path.name == MANIFEST:
            return list(validate_manifest(path).findings)
        if registry is not None and absolute(path).parent in (absolute(registry), absolute(registry / "verticals")):
            return _below(registry, path)
        return list(validate_rule_file(path).findings)
    except OSError as error:
        raise Failure(f"{path}: can't be read: {error.strerror or error}") from error


def _below(registry: Path, path: Path) -> list[Finding]:
    """The findings of a registry in one of its files, or in the files of one of its folders."""
    findings = validate_tree(with_rounds(tree_of(registry)), disk.today()).findings
    if path.resolve() == registry.resolve():
        return list(findings)
    shown = Path(os.path.normpath(path)).as_posix()
    return [finding for finding in findings if finding.file == shown or finding.file.startswith(f"{shown}/")]


def list_judges(
    vertical: str | None, category: str | None, only: Sequence[str | None], configs: Path | None, as_json: bool
) -> None:
    """Show the judges. `only`: the id, classification and sub-agent of those that are shown."""
    root = root_of(configs)
    registry, result = read_registry(tree_of(root))
    if registry is None:
        raise Failure(
            f"{root}: {counted(len(result.errors), 'error')}; `rampgate rules validate` shows them: {result.errors[0]}"
        )
    if vertical is not None:
        require_vertical(vertical, registry.verticals)
    try:
        judges = eval_config(registry, vertical, category).judges if category else None
    except UnknownName as error:
        raise Failure(str(error)) from error
    judge, classification, sub_agent = only
    wanted = judge and judge_id(judge)
    known = {"id": registry.rules(), "classification": [*Classification], "sub-agent": registry.sub_agents}
    for (kind, names), name in zip(known.items(), (wanted, classification, sub_agent), strict=True):
        if name is not None and name not in names:
            raise Failure(f"--{UnknownName(kind, name, names)}")
    of = registry.all(vertical) if sub_agent is None else registry.for_sub_agent(sub_agent, vertical)
    ids = {one.id for one in of if wanted in (None, one.id) and classification in (None, one.classification)}
    judges = [served(one) for one in registry.all(vertical)] if judges is None else judges
    judges = [one for one in judges if one.id in ids]
    if as_json:
        listed = [one.model_dump(mode="json") for one in judges]
        about = {"vertical": vertical, "category": category, "config_hash": registry.config_hash}
        print_json({**about, "judges": listed})
    else:
        about_category = f" that fire on {category}" if category else ""
        show_judges(judges, f"{counted(len(judges), 'judge')}{about_category}, {seen_by(vertical)}", disk.today())


def diff(ref: str, configs: Path | None, as_json: bool) -> int:
    """Show the changes since `ref`. Exit code 1 for a change. Raises Failure for an unreadable side, and NoHistory."""
    root = root_of(configs)
    now, commit = tree_of(root), commit_of(root, ref)
    found = changes(_judges(tree_at(root, ref), f"{root} at {ref}"), _judges(now, str(root)))
    if as_json:
        listed = [{**asdict(one), "vertical": one.vertical or None} for one in found]
        print_json({"ref": ref, "commit": commit, "changed": bool(found), "changes": listed})
    else:
        show_changes(found, f"Since {ref} ({commit[:12]})")
    return 1 if found else 0


def _judges(tree: Tree, what: str) -> list[Judge]:
    """The judges as the platform and each vertical see them.

    Lint errors are ignored, because an earlier version was written under earlier checks. A file that can't be read is a
    Failure, because its judge would look as if it were gone.
    """
    files, findings = checked(tree, disk.today())
    first = next((str(finding) for finding in findings if finding.severity is Severity.ERROR), "")
    if files.unread:
        raise Failure(f"{what}: can't be compared, not every file can be read: {first}")
    try:
        return list(every_view(build(files)))
    except (LookupError, ValueError) as error:
        raise Failure(f"{what}: can't be compared: {first or error}") from error
