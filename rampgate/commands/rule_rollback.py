"""Runs `rampgate rules rollback`: takes a judge's files from git, validates, writes, syncs and times it (PC5 FR-10,
NFR-6, AC-7, §5.7)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rampgate.command import Context, Document, command, read_registry
from rampgate.commands.rule_sync import chosen, part_section, refreshed, trouble_of, worker_section
from rampgate.commands.rules import change_answers, changes_section
from rampgate.console import Failure
from rampgate.options import DryRunOption, VerticalOption, YesOption
from rampgate.report.findings import reasons_of
from rampgate.report.model import Report, Section

if TYPE_CHECKING:
    from evalcore.registry.files import Tree

Told = Mapping[str, Any]


def rollback_report(told: Told) -> Report:
    """The report of a rollback's plan and of its outcome."""
    commit = told["to"][:12]
    if "verticals" not in told:
        wrong = f"nothing was changed: as at {commit} the files hold an error"
        return Report("Rollback", wrong, "fail", reasons=reasons_of(told))
    title, names = f"Rollback of {told['judge']} to {commit}", " ".join(told["files"])
    why = trouble_of(told["verticals"])
    changed, many = changes_section(told["changes"], "What changes")
    files = [f"{names}: {many}" if names else f"the files are as at {commit} already"]
    sections = [
        Section("Files", notes=files),
        changed,
        *map(part_section, told["verticals"]),
        *worker_section(told["worker"]),
    ]
    if told["worker"] is None:
        return Report(title, "planned; nothing was written" if told["dry_run"] else "nothing was changed", "pass",
                      sections, why)  # fmt: skip
    if told["rolled_back"]:
        notes = [f"commit it: git add -A -- {names} && git commit"] if names else []
        done = f"rolled back in {told['duration_seconds']:.1f} s"
        return Report(title, done, "pass", [*sections, Section("Next", notes=notes)], why)
    behind = [one["vertical"] for one in told["verticals"] if one["error"] or one["failed"]]
    ahead = [one["vertical"] for one in told["verticals"] if one["vertical"] not in behind]
    notes = [
        f"Opik holds that version for: {', '.join(ahead) or 'no vertical'}",
        f"Opik does not for: {', '.join(behind)}",
        f"to resume: rampgate rules rollback {told['judge']} --to {commit}",
        *([f"to go back: git restore -- {names} && rampgate rules sync"] if names else []),
    ]
    done = f"half done: the files are as at {commit}, not committed"
    return Report(title, done, "fail", [*sections, Section("Next", notes=notes)], why)


@command(rollback_report, flags="configs opik metrics_file", metrics=("eval_rollback_duration_seconds",))
async def rollback(
    context: Context,
    name: Annotated[str, Argument(help="The judge's id")],
    to: Annotated[
        str | None, Option(metavar="REF", help="The version; default: before the last commit about it")
    ] = None,
    vertical: VerticalOption = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> Document:
    """Bring a judge's rule files back from git, the central one and every vertical's, and sync that judge.

    It validates before it writes, leaves the files in the working tree for you to commit, and never rewrites history.
    Safe to run again after a failure: it continues where it stopped. Exit code 1 if the earlier version has an error
    (nothing was changed) or Opik refused it, 2 if Opik can't be reached or written.

    Example: rampgate rules rollback response_quality --to v1.4.0 --yes
    """
    from evalcore.registry.rule_diff import changes
    from rampgate.registry.metrics import every_view
    from rampgate.registry.rule_history import changed_since, require_committed, restore, tree_at
    from rampgate.registry.rule_sync import RuleSync
    from rampgate.registry.view import validation_answer
    from schemas.judges import judge_id

    began = time.monotonic()
    root, now, judge = context.settings.configs, context.tree, judge_id(name)
    commit = _version(root, name, to, now)
    then = tree_at(root, commit)
    _require_known(judge, _judges(now) | _judges(then))
    files = changed_since(root, commit, judge)
    require_committed(root, files)
    after, result = read_registry(_as_at(now, then, files), context.today)
    if after is None:
        return Document({"rolled_back": False, "to": commit, **validation_answer(result)}, 1)
    making = RuleSync(context.settings, after, chosen(context, vertical), {judge})
    await making.look()
    making.parts = [part for part in making.parts if not (part.absent and vertical is None)]
    if trouble := [part.trouble for part in making.parts if part.trouble]:
        raise Failure(f"nothing was changed: {'; '.join(dict.fromkeys(trouble))}")
    before, _ = context.validated
    found = changes(every_view(before), every_view(after)) if before is not None else ()
    fields: dict[str, Any] = {
        "rolled_back": False,
        "dry_run": dry_run,
        "judge": judge,
        "to": commit,
        "files": [(root / file).as_posix() for file in files],
        "changes": change_answers(found),
        "worker": None,
        "verticals": making.documents(),
        "duration_seconds": 0.0,
    }
    if not dry_run:
        question = "Write these files, and this to Opik?"
        if (files or not making.empty) and not context.confirm(rollback_report(fields), question, yes):
            return Document(fields)
        restore(root, commit, files)
        await making.carry_out()
        fields |= {"verticals": making.documents(), "worker": await refreshed(context.settings, after)}
        fields["rolled_back"] = making.exit_code == 0
    fields["duration_seconds"] = round(time.monotonic() - began - context.waited, 3)
    if context.metrics_file is not None and fields["rolled_back"]:
        context.metrics.rollback_duration.observe(fields["duration_seconds"])
    return Document(fields, making.exit_code)


def _version(root: Path, judge: str, to: str | None, now: Tree) -> str:
    """The commit to go back to. Raises NoHistory, and Failure for a judge that neither the files nor git know."""
    from rampgate.registry.rule_history import NoHistory, before_last_change, commit_of

    if to is not None:
        return commit_of(root, to)
    try:
        return before_last_change(root, judge)
    except NoHistory:
        _require_known(judge, _judges(now))
        raise


def _judges(tree: Tree) -> set[str]:
    from schemas.judges import judge_id

    return {judge_id(Path(name).stem) for name in tree.files if name.startswith("rules/")}


def _require_known(judge: str, known: set[str]) -> None:
    from rampgate.registry.view import UnknownName
    from schemas.judges import judge_id

    if judge_id(judge) not in known:
        raise Failure(str(UnknownName("judge", judge_id(judge), known)))


def _as_at(now: Tree, then: Tree, files: Sequence[Path]) -> Tree:
    """The files after the rollback: the changed ones as they were then, all others as they are now."""
    names = [file.as_posix() for file in files]
    kept = {name: content for name, content in now.files.items() if name not in names}
    return replace(now, files=kept | {name: then.files[name] for name in names if name in then.files})
