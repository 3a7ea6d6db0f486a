"""Runs `rampgate rules validate`, `list` and `diff`: what the rule files hold (contracts §5)."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from rampgate.command import Context, Document, command, read_tree, readable
from rampgate.console import Failure
from rampgate.report.findings import validation_report
from rampgate.report.model import Cell, Report, Section
from schemas.counting import counted

if TYPE_CHECKING:
    from evalcore.registry.files import Tree
    from evalcore.yaml.findings import Finding

YAML = (".yaml", ".yml")
SHORT = 60
FINDINGS = ("eval_rule_validation_failed_total", "eval_manifest_drift_total")
MILESTONES = ("pre_merge", "pre_ramp", "pre_full")
RefArgument = Annotated[str, Argument(help="A commit, branch or tag of git")]
VerticalOption = Annotated[str | None, Option(help="As this vertical sees them")]
Told = Mapping[str, Any]


@command(validation_report, flags="configs metrics_file", metrics=FINDINGS)
def validate(
    context: Context,
    paths: Annotated[
        list[Path] | None,
        Argument(metavar="[PATH]...", help="Rule files or folders; default: the whole registry", show_default=False),
    ] = None,
) -> Document:
    """Show every finding of the rule files, with place, rule and remedy. A file is checked together with its registry.

    Exit code 0 for warnings only, 1 for an error, 2 for a missing path.

    Example: rampgate rules validate configs/rules/receipts --report github
    """
    from evalcore.validation import validate_tree
    from evalcore.yaml.findings import ValidationResult

    if missing := [str(path) for path in paths or () if not path.exists()]:
        raise Failure(f"{', '.join(missing)}: no such file or folder")
    if paths:
        found = [finding for path in paths for finding in _of_path(path, context)]
        return validated(context, ValidationResult.of(paths[0], found))
    return validated(context, validate_tree(with_rounds(context.tree), context.today))


def validated(context: Context, result: Any) -> Document:
    """The answer to a validation, whose findings it counts for `--metrics-file`."""
    from rampgate.registry.metrics import count_findings
    from rampgate.registry.view import validation_answer

    if context.metrics_file is not None:
        count_findings(context.metrics, result.findings)
    return Document(validation_answer(result), 0 if result.valid else 1)


def _of_path(path: Path, context: Context) -> list[Finding]:
    from evalcore.registry.files import AGREEMENT, EXTENSION, MANIFEST, SELECTION
    from evalcore.validation import validate_manifest, validate_rule_file

    registry = registry_of(path)
    if path.is_dir():
        if registry is not None:
            return _below(registry, path, context)
        files = sorted(file for file in path.rglob("*") if file.suffix in YAML and file.is_file())
        if not files:
            raise Failure(f"{path}: holds no rule files; name a registry's folder, its rules/, or a rule file")
        return [finding for file in files for finding in _of_path(file, context)]
    if path.name == AGREEMENT:
        raise Failure(f"{path}: is no rule file; `rampgate rules validate` without a path checks it, too")
    if path.name in (EXTENSION, SELECTION) or path.suffix == ".xml":
        raise Failure(f"{path}: is no rule file; `rampgate manifest validate {path}` is about it")
    if path.name == MANIFEST:
        return list(validate_manifest(path).findings)
    if registry is not None and absolute(path).parent in (absolute(registry), absolute(registry / "verticals")):
        return _below(registry, path, context)
    return list(validate_rule_file(path).findings)


def with_rounds(tree: Tree) -> Tree:
    """Returns the tree with the categories that have had a round of annotation, by the reference set of each vertical
    that has thresholds of agreement (PF-9 FR-14). Raises Failure for a set that can't be read or was changed otherwise
    than at its end."""
    from dataclasses import replace

    from evalcore.registry.files import AGREEMENT, REFERENCE_SET
    from rampgate.checks.agreement import read_reference

    found = {}
    for name in tree.files:
        folder = Path(name).parent
        if name.endswith(f"/eval/{AGREEMENT}"):
            entries = read_reference(Path(os.path.normpath(tree.root / folder / REFERENCE_SET)))
            found[folder.parent.name] = frozenset(str(entry["category"]) for entry in entries)
    return replace(tree, rounds=found)


def _below(registry: Path, path: Path, context: Context) -> list[Finding]:
    """The findings of a registry in one of its files, or in the files of one of its folders."""
    from evalcore.validation import validate_tree

    findings = validate_tree(with_rounds(read_tree(registry)), context.today).findings
    if path.resolve() == registry.resolve():
        return list(findings)
    shown = os.path.normpath(path)
    return [finding for finding in findings if Path(finding.file).is_relative_to(shown)]


def registry_of(path: Path) -> Path | None:
    """The folder of the registry that a path belongs to: itself, or the one around its `rules` or `verticals`."""
    from evalcore.registry.files import MANIFEST

    for up in ("", "..", "../..", "../../.."):
        folder = Path(os.path.normpath(path / up))
        inside = absolute(path).relative_to(absolute(folder)).parts
        if not folder.is_dir() or not ((folder / "rules").is_dir() or (folder / MANIFEST).is_file()):
            continue
        if len(inside) < 2 or inside[0] in ("rules", "verticals"):
            return folder
    return None


def absolute(path: Path) -> Path:
    """The absolute path without `..`; links are not followed."""
    return Path(os.path.normpath(path.absolute()))


def list_report(told: Told) -> Report:
    fires = f" that fire on {told['category']}" if told["category"] else ""
    judges = told["judges"]
    return Report(
        f"Judges {seen_by(told['vertical'])}, registry {told['config_hash']}",
        f"{counted(len(judges), 'judge')}{fires}", "pass", [judges_section(judges, told["today"])],
    )  # fmt: skip


@command(list_report, flags="configs")
def list_judges(
    context: Context,
    vertical: VerticalOption = None,
    category: Annotated[str | None, Option(help="Only what fires on this category")] = None,
    judge: Annotated[str | None, Option("--id", help="Only this judge")] = None,
    classification: Annotated[
        Literal["safety_refusal", "quality"] | None, Option(help="Only judges of this class")
    ] = None,
    sub_agent: Annotated[str | None, Option(help="Only what scores this sub-agent")] = None,
) -> Document:
    """List the judges with classification, thresholds, floor, tolerance, provenance and the day they are due.

    Example: rampgate rules list --vertical receipts --category receipt_scan
    """
    from rampgate.registry.view import UnknownName, eval_config, require_vertical, served
    from schemas.judges import judge_id

    registry = context.registry
    if vertical is not None:
        require_vertical(vertical, registry.verticals)
    fires = eval_config(registry, vertical, category).judges if category else None
    wanted = judge and judge_id(judge)
    for kind, name, names in (("id", wanted, registry.rules()), ("sub-agent", sub_agent, registry.sub_agents)):
        if name is not None and name not in names:
            raise UnknownName(kind, name, names)
    of = registry.all(vertical) if sub_agent is None else registry.for_sub_agent(sub_agent, vertical)
    ids = {one.id for one in of if wanted in (None, one.id) and classification in (None, one.classification)}
    shown = fires if fires is not None else [served(one) for one in registry.all(vertical)]
    listed = [one.model_dump(mode="json") for one in shown if one.id in ids]
    about = {"vertical": vertical, "category": category, "config_hash": registry.config_hash}
    return Document({**about, "today": context.today.isoformat(), "judges": listed})


def judges_section(judges: Iterable[Told], today: str, title: str = "") -> Section:
    heads = ("Judge", "Class", "Scale", "Thresholds", "Floor", "Tolerance", "Enforcement", "Provenance", "Due")
    rows = [
        [
            one["id"] if one["enabled"] else f"{one['id']} (off)",
            "quality" if one["classification"] == "quality" else "safety",
            one["score_type"],
            _each(_score(one["thresholds"][milestone]) for milestone in MILESTONES),
            one["floor"],
            one["tolerance"],
            _each(one["enforcement"][milestone] for milestone in MILESTONES),
            ", ".join(filter(None, (one["baseline_source"], one["calibration_ref"]))),
            _due(one, today),
        ]
        for one in judges
    ]
    notes = ["Thresholds and enforcement: pre_merge / pre_ramp / pre_full, one where all are equal"]
    return Section(title, heads, rows, notes)


def _due(one: Told, today: str) -> str | Cell:
    due = min(filter(None, (one["recalibration_due"], (one["floor_provenance"] or {}).get("recalibration_due"))))
    return Cell(f"{due} (overdue)", "fail") if due < today else str(due)


def seen_by(vertical: str | None) -> str:
    return f"as {vertical} sees them" if vertical else "as the platform has them"


def _each(values: Iterable[str]) -> str:
    """The values by milestone, or one where all are equal."""
    found = list(values)
    return found[0] if len(set(found)) == 1 else " / ".join(found)


def _score(value: bool | float) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def diff_report(told: Told) -> Report:
    section, many = changes_section(told["changes"])
    tone = "warn" if told["changed"] else "pass"
    return Report(f"Since {told['ref']} ({told['commit'][:12]})", many, tone, [section])


@command(diff_report, flags="configs")
def diff(context: Context, ref: RefArgument = "HEAD") -> Document:
    """Compare the files with a version in git, by judges and values instead of lines of text.

    Exit code 0 without a difference, 1 with one. For differences from Opik: rampgate rules sync --dry-run

    Example: rampgate rules diff origin/main
    """
    from evalcore.registry.rule_diff import changes
    from evalcore.validation import checked
    from rampgate.registry.metrics import every_view
    from rampgate.registry.rule_history import commit_of, tree_at

    root = context.settings.configs
    now, commit, tree = every_view(context.readable[1]), commit_of(root, ref), tree_at(root, ref)
    try:
        # An earlier version was written under earlier checks: its errors count for nothing.
        then = every_view(readable(*checked(tree, context.today))[1])
    except Failure as error:
        raise Failure(f"{root} at {ref}: {error}") from error
    found = changes(then, now)
    fields = {"ref": ref, "commit": commit, "changed": bool(found), "changes": change_answers(found)}
    return Document(fields, 1 if found else 0)


def change_answers(found: Iterable[Any]) -> list[dict[str, Any]]:
    from dataclasses import asdict

    return [{**asdict(one), "vertical": one.vertical or None} for one in found]


def changes_section(changes: Sequence[Told], title: str = "") -> tuple[Section, str]:
    """A line for each changed value, one where platform and verticals share the change; and how many there are."""
    told: dict[tuple[str, str, str, str], list[str]] = {}
    for one in changes:
        key = (one["judge"], one["field"], repr(one["before"]), repr(one["after"]))
        told.setdefault(key, []).append(one["vertical"] or "platform")
    lines = []
    for (judge, name, before, after), seen in told.items():
        who = "" if "platform" in seen else f" for {', '.join(seen)}"
        was, now = _from_where_they_part(before, after)
        what = f"{name}: {was[:SHORT]} → {now[:SHORT]}" if name else "new" if before == "None" else "gone"
        lines.append(f"{judge}{who}: {what}")
    return Section(title, notes=lines), counted(len(told), "change") if told else "no judge has changed"


def _from_where_they_part(before: str, after: str) -> tuple[str, str]:
    """The ends of two texts from where they differ, with a few characters before it."""
    alike = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), 0)
    start = alike - SHORT // 3
    return (f"…{before[start:]}", f"…{after[start:]}") if start > 0 else (before, after)
