"""Runs `rampgate gate plan`: which gates a change triggers, and which of them its overrides skip (PC5 §5.5)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from schemas.dead_letters import clean

if TYPE_CHECKING:
    from evalcore.gates.overrides import Renamed


GONE = {"--repository": "say --pull-request OWNER/NAME#NUMBER"}


@command("rampgate.gate.report:plan_report", flags="configs", gone=GONE)
def gate_plan(
    context: Context,
    files: Annotated[list[str] | None, Argument(metavar="[FILE]...", help="more changed files")] = None,
    changed: Annotated[list[str] | None, Option(help="a changed file, from the repository's root")] = None,
    base: Annotated[str | None, Option(metavar="REF", help="the target branch: what changed since, by git")] = None,
    head: Annotated[str, Option(metavar="REF", help="with --base: the pull request's last commit")] = "HEAD",
    pull_request: Annotated[
        str | None,
        Option(metavar="OWNER/NAME#N", help="on GitHub, which says what its branch requires and who approved"),
    ] = None,
    audit: Annotated[
        Path | None, Option(help="on the push of a merge: append its overrides to this JSON Lines file")
    ] = None,
    agent_id: Annotated[str | None, Option(help="whose rollout's gate a skip is, as ramp steps name the agent")] = None,
    agent_version: Annotated[str | None, Option(help="and its version")] = None,
) -> Document:
    """Show which gates a change triggers, by the paths it touches, and which of them its overrides skip once merged.

    With --base the files are those that git finds changed, a renamed one under both its names, and the table of paths
    (configs/gate-paths.yaml) is that branch's.

    With --agent-id and --agent-version a skip that `overrides publish` sent is honoured by that version's rollout.

    A skip needs a label (eval-skip-pre-ramp, eval-skip-pre-full), a filled-in block eval-skip-justification and the
    reviewer's tick; an entry of enforcement-overrides.yaml needs the label eval-enforcement-override. All need a branch
    that requires a review, and hold once they are merged and published. Exit code 1 if an override does not hold.

    Example: rampgate gate plan --base origin/main
    """
    from dataclasses import asdict

    from evalcore.gates.overrides import accepted, excepted, plan
    from rampgate.ci_gate.changes import changes, exceptions_added, table_at
    from rampgate.overrides import append_merge, looked_up
    from rampgate.registry.rule_history import commit_of

    if bool(agent_id) != bool(agent_version):
        raise Failure("an agent definition is both: --agent-id ID --agent-version VERSION")
    definition = {"agent_id": agent_id, "agent_version": agent_version} if agent_id else {}
    names: list[str | Renamed] = [*(changed or []), *(files or [])]
    if not names and base is None:
        raise Failure("say what changed: rampgate gate plan --base REF, or --changed FILE [FILE]...")
    names += changes(Path(), base, head) if base is not None else []
    configs, today = context.settings.configs, context.today
    table = table_at(Path(), configs, base)
    pull = looked_up(pull_request)
    made = plan(names, today=today, table=table.paths, pull=pull)
    added, refused = excepted(exceptions_added(Path(), configs, base, head), pull) if pull else ([], [])
    refused += made.wrong
    if audit is not None:
        shifts, wrong = accepted(pull, context.judging(None), today)
        refused += wrong
        skips = [skip | definition for skip in made.skipped]
        overrides = {"gate_skip": skips, "baseline_shift": shifts, "enforcement": added}
        append_merge(audit, pull, commit_of(Path(), head), overrides)
    if context.as_json:  # a job keeps the document in a file: its log says why an override does not hold
        sys.stderr.write("".join(f"override refused: {clean(one, 500)}\n" for one in refused))
    fields = {
        "gates": list(made.gates),
        "files": [asdict(one) for one in made.files],
        "table": table.source,
        "skipped": made.skipped,
        "refused": refused,
    }
    return Document(fields, 1 if refused else 0)
