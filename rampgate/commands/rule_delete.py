"""Runs `rampgate rules delete`: refuses a judge that still has a file, asks, audits, deletes its copies (PC5 §2)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.commands.rule_sync import chosen
from rampgate.console import Failure, user
from rampgate.options import DryRunOption, VerticalOption, YesOption
from rampgate.report.model import Reason, Report, Section


def delete_report(told: Mapping[str, Any]) -> Report:
    deleted = {rule for part in told["verticals"] for rule in part["deleted"]}
    rows = [[one["vertical"], one["rule"], "deleted" if one["rule"] in deleted else ""] for one in told["found"]]
    why = [
        Reason("error", part["error"], about=part["vertical"], undecided=True)
        for part in told["verticals"]
        if part["error"]
    ]
    if not rows:
        result = "nothing to do: Opik holds no copy of it that a sync made"
    elif told["dry_run"]:
        result = "planned; nothing was deleted"
    else:
        result = f"{len(deleted)} of {len(rows)} deleted" if deleted else "nothing was changed"
    sections = [Section("Copies", ("Vertical", "Rule", "Done"), rows)]
    return Report(f"Copies of {told['judge']} in Opik", result, "fail" if why else "pass", sections, why)


@command(delete_report, flags="configs opik")
async def delete(
    context: Context,
    name: Annotated[str, Argument(help="The judge's id")],
    vertical: VerticalOption = None,
    audit: Annotated[Path | None, Option(help="JSON Lines file to which each deletion is appended first")] = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> Document:
    """Delete from Opik what a sync made of a judge that is no longer in the registry.

    A judge that has a rule file is refused, since gates may need it. Rules that no sync made are left alone.

    Example: rampgate rules delete old_judge --audit audit.jsonl --yes
    """
    from rampgate.overrides import write
    from rampgate.registry.rule_removal import RuleRemoval
    from schemas.judges import judge_id

    judge, configs = judge_id(name), context.settings.configs
    registry, _ = context.validated
    if registry is None:
        raise Failure(f"{configs}: a file has an error, so it is unknown which judges gates need")
    if judge in registry.rules():
        raise Failure(
            f"{configs}/rules/{judge}.yaml: gates need {judge} as long as it has this file, and the next sync would "
            "make its copies again. Take it out of the manifest's sources and delete the file first; `rampgate "
            "manifest validate` names what still needs it"
        )
    removal = RuleRemoval(context.settings, registry, chosen(context, vertical), judge)
    await removal.look()

    def answer(exit_code: int) -> Document:
        parts = [
            {"vertical": one.vertical.name, "deleted": one.written, "error": one.trouble or None}
            for one in removal.parts
        ]
        return Document({"judge": judge, "dry_run": dry_run, "found": removal.entries, "verticals": parts}, exit_code)

    if removal.entries and not dry_run:
        if not context.confirm(delete_report(answer(0)), "Delete this from Opik?", yes):
            return answer(0)
        write(audit, "rule_delete", [{**entry, "by": user()} for entry in removal.entries])
        await removal.remove()
    return answer(removal.exit_code)
