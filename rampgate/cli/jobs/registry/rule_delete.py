"""Deletes a judge's copies from Opik: refuses a judge that still has a file, asks, audits, deletes (PC5 §2)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rampgate.cli.jobs.registry.registries import read_registry, tree_of
from rampgate.cli.jobs.registry.rules import agreed, chosen, progress_console
from rampgate.console import Failure, plain, print_json, run, user
from rampgate.logs import configure_logs
from rampgate.overrides import write
from rampgate.registry.rule_removal import RuleRemoval
from rampgate.settings import Settings
from schemas.judges import judge_id


@dataclass(frozen=True)
class DeleteAsked:
    name: str
    vertical: str | None
    audit: Path | None
    yes: bool
    dry_run: bool
    as_json: bool


def delete_rule(settings: Settings, asked: DeleteAsked) -> int:
    """Delete, and return the exit code: 0 done or nothing to do, 2 a vertical's project can't be reached or written.
    Raises Failure for a judge that a gate may need, where the audit can't be written, and where there is nobody to
    ask."""
    configure_logs(settings.log_level, settings.log_format)
    judge = judge_id(asked.name)
    registry, _ = read_registry(tree_of(settings.configs))
    if registry is None:
        raise Failure(f"{settings.configs}: a file has an error, so nobody knows which judges gates need")
    if judge in registry.rules():
        raise Failure(
            f"{settings.configs}/rules/{judge}.yaml: gates need {judge} as long as it has this file, and the next sync "
            "would make its copies anew. Take it out of the manifest's sources and delete the file first; `rampgate "
            "manifest validate` names what still needs it"
        )
    removal = RuleRemoval(settings, registry, chosen(settings, asked.vertical), judge)
    run(removal.look)
    console = progress_console(asked.as_json)
    for entry in removal.entries:
        console.print(f"delete {plain(judge)} of {plain(entry['vertical'])}, rule {plain(entry['rule'])}")
    for part in removal.parts:
        if part.trouble:
            console.print(plain(part.trouble, 500))
    if not removal.entries:
        console.print("nothing to do: Opik holds no copy of it that a sync made")
    elif not asked.dry_run:
        if not agreed(asked.yes, "Delete this from Opik?")[0]:
            console.print("nothing was changed")
            return 0
        write(asked.audit, "rule_delete", [{**entry, "by": user()} for entry in removal.entries])
        run(removal.remove)
    if asked.as_json:
        parts = [
            {"vertical": one.vertical.name, "deleted": one.written, "error": one.trouble or None}
            for one in removal.parts
        ]
        print_json({"judge": judge, "dry_run": asked.dry_run, "found": removal.entries, "verticals": parts})
    return removal.exit_code
