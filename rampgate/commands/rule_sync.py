"""Runs `rampgate rules sync` and `create`: validates, shows the plan, asks, writes what differs, refreshes workers."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from rampgate.command import Context, Document, command
from rampgate.commands.rules import absolute, registry_of
from rampgate.console import Failure, user
from rampgate.options import DryRunOption, VerticalOption, YesOption
from rampgate.report.findings import reason_of, reasons_of
from rampgate.report.model import Cell, Reason, Report, Section

if TYPE_CHECKING:
    from evalcore.registry.registry import Registry
    from rampgate.settings import Settings
    from schemas.verticals import Vertical

Told = Mapping[str, Any]
FLAGS, SECONDS = "configs opik metrics_file", ("rampgate_rules_sync_duration_seconds",)


def sync_report(told: Told) -> Report:
    """The report of a sync's plan and of its outcome, and of `manifest sync`, which also compares the dataset."""
    if "verticals" not in told:
        return Report("Sync", "nothing is synced: the files hold an error", "fail", reasons=reasons_of(told))
    planned = any(part["create"] or part["update"] or part["delete"] for part in told["verticals"])
    why = [*map(reason_of, told.get("warnings", ())), *trouble_of(told["verticals"])]
    fails = any(one.level == "error" for one in why)
    if not planned and not fails:
        result = "nothing to do: Opik holds what the files say"
    elif told["dry_run"]:
        result = "planned; nothing was written"
    else:
        result = "synced" if told["synced"] else "not all is synced" if told["worker"] else "nothing was changed"
    sections = [*map(part_section, told["verticals"]), *_dataset(told), *worker_section(told["worker"])]
    return Report("Sync", result, "fail" if fails else "pass", sections, why)


def part_section(part: Told) -> Section:
    """What a sync writes for a vertical, or has written."""
    written = {*part["written"]}
    rows = [[Cell("create", "pass"), judge, "", judge in written] for judge in part["create"]]
    rows += [
        [Cell("update", "warn"), one["judge"], ", ".join(one["changes"]), one["judge"] in written]
        for one in part["update"]
    ]
    rows += [[Cell("delete", "fail"), one["judge"], one["rule"], one["judge"] in written] for one in part["delete"]]
    rows += [["leave", one["name"], one["reason"], False] for one in part["left_alone"]]
    live = "judges there" if part["live_judge"] == "opik" else "does not judge there: rules are disabled"
    counts = f"{len(part['create'])} to create, {len(part['update'])} to update, {len(part['unchanged'])} unchanged"
    title = f"{part['vertical']}, project {part['project']}"
    shown = [[*row, "done" if done else ""] for *row, done in rows]
    return Section(title, ("Plan", "Judge", "What", "Done"), shown, [f"{counts}; Opik {live}"])


def trouble_of(parts: Collection[Told]) -> list[Reason]:
    """Why verticals could not be read or written, and judges that Opik refused."""
    stopped = [Reason("error", one["error"], about=one["vertical"], undecided=True) for one in parts if one["error"]]
    refused = [
        Reason("error", each["reason"], "refused", f"{one['vertical']}: {each['judge']}")
        for one in parts
        for each in one["failed"]
    ]
    return stopped + refused


def worker_section(worker: Told | None) -> list[Section]:
    return [Section("Worker", notes=[worker["message"]])] if worker is not None else []


def _dataset(told: Told) -> list[Section]:
    if "dataset" not in told:
        return []
    found = told["dataset"]
    about = [one for one in told["warnings"] if one["check"].startswith("dataset")]
    said = f"can't be looked up: {found['error']}" if found["error"] else "as the manifest says" * (not about)
    return [Section(f"Dataset {found['name']}", notes=[said])] if said else []


@command(sync_report, flags=FLAGS, metrics=SECONDS)
async def sync(
    context: Context,
    vertical: VerticalOption = None,
    delete: Annotated[
        list[str] | None,
        Option(help="Also delete the copies of this judge, which has no file here any more; again for more"),
    ] = None,
    audit: Annotated[
        Path | None, Option(help="With --delete: JSON Lines file to which each deletion is appended first")
    ] = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> Document:
    """Write the judges to each vertical's own Opik project: show a plan first, then write only what differs.

    It deletes nothing without --delete, and touches no rule that it did not make. A judge that has a rule file is not
    deleted, since gates may need it. Exit code 1 if a file has an error (nothing is synced) or Opik refused a rule (the
    others are synced), 2 if a vertical's project can't be reached or written.

    Example: rampgate rules sync --vertical receipts --yes
    """
    from schemas.judges import judge_id

    doomed = {judge_id(name) for name in delete or ()}
    registry, configs = context.validated[0], context.settings.configs
    for judge in sorted(doomed & {*(registry.rules() if registry else ())}):
        raise Failure(
            f"--delete: {configs}/rules/{judge}.yaml: gates need {judge} as long as it has this file, and the next "
            "sync would make its copies again. Take it out of the manifest's sources and delete the file first; "
            "`rampgate manifest validate` names what still needs it"
        )
    return await synced(context, vertical, yes, dry_run, doomed=doomed, audit=audit)


@command(sync_report, flags="opik metrics_file", metrics=SECONDS)
async def create(
    context: Context,
    name: Annotated[str, Option(help="The judge's id, or its name in the file")],
    file: Annotated[Path, Option(help="Its rule file in the registry, or a vertical's")],
    vertical: VerticalOption = None,
    dry_run: DryRunOption = False,
) -> Document:
    """Sync one rule without asking: create it where it is missing, update it where it differs. PC5's own form.

    It validates the whole registry around the file. Exit code 1 where the rule was not written.

    Example: rampgate rules create --name response_quality --file configs/rules/response_quality.yaml
    """
    from schemas.judges import judge_id

    if not file.is_file():
        raise Failure(f"--file {file}: no such file")
    root = registry_of(file)
    place = absolute(file).relative_to(absolute(root)).parts if root is not None else ()
    if root is None or len(place) not in (2, 3) or place[0] != "rules":
        raise Failure(
            f"--file {file}: is no rule file of a registry; put it into the registry's rules/ first (PC5 FR-9)"
        )
    if len(place) == 3:
        if vertical not in (None, place[1]):
            raise Failure(f"--file {file}: is a file of vertical {place[1]}, and not of {vertical}")
        vertical = place[1]
    context.given = {**context.given, "configs": root}
    registry, _ = context.validated
    judge = judge_id(file.stem)
    known = {judge, registry.judge(judge).rule.name.lower()} if registry and judge in registry.rules() else {judge}
    if judge_id(name) not in known and name.lower() not in known:
        raise Failure(f"--name {name}: {file} is the rule file of {judge}; name that one")
    return await synced(context, vertical, True, dry_run, {judge})


async def synced(
    context: Context,
    vertical: str | None,
    yes: bool,
    dry_run: bool,
    only: Collection[str] | None = None,
    beside: Told | None = None,
    doomed: Collection[str] = (),
    audit: Path | None = None,
) -> Document:
    """Sync the judges, or `only` those with these ids. `beside`: more fields of the answer. `doomed`: ids of judges
    whose copies are deleted, each written to `audit` first.

    Exit code: 0 done or nothing to do, 1 a file has an error or Opik refused a rule, 2 a vertical's project can't be
    reached or written.
    """
    from rampgate.overrides import write
    from rampgate.registry.rule_sync import RuleSync
    from rampgate.registry.view import validation_answer

    began = time.monotonic()
    registry, result = context.validated
    if registry is None:
        return Document({"synced": False, **validation_answer(result)}, 1)
    making = RuleSync(context.settings, registry, chosen(context, vertical), only, doomed)
    await making.look()
    fields: dict[str, Any] = {
        "synced": False,
        "dry_run": dry_run,
        "config_hash": registry.config_hash,
        "verticals": making.documents(),
        "worker": None,
        "duration_seconds": 0.0,
        **(beside or {}),
    }
    if not dry_run:
        if not making.empty and not context.confirm(sync_report(fields), "Write this to Opik?", yes):
            return Document(fields)
        if deleted := making.deletions:
            write(audit, "rule_delete", [{**entry, "by": user()} for entry in deleted])
        await making.carry_out()
        fields |= {"verticals": making.documents(), "worker": await refreshed(context.settings, registry)}
        fields["synced"] = making.exit_code == 0
    fields["duration_seconds"] = round(time.monotonic() - began - context.waited, 3)
    if context.metrics_file is not None:
        context.metrics.rules_sync_duration.observe(fields["duration_seconds"])
    return Document(fields, making.exit_code)


def chosen(context: Context, name: str | None) -> list[Vertical]:
    """The registered verticals, or the named one. Raises Failure, also where none is registered."""
    from rampgate.registry.view import require_vertical

    verticals = context.verticals
    if name is None:
        if not verticals:
            raise Failure(
                f"{context.settings.configs}/verticals: no vertical is registered; a file there names its Opik project"
            )
        return list(verticals.values())
    require_vertical(name, verticals)
    return [verticals[name]]


async def refreshed(settings: Settings, registry: Registry) -> dict[str, Any]:
    """The answer of the worker at RAMPGATE_HTTP, which reads the files again (PC5 §5.7 step 4, AC-7). A missing worker
    is no failure: it may run elsewhere, or start later."""
    from rampgate.registry.refresh import request_refresh

    try:
        done = await request_refresh(settings)
    except Failure as error:
        every = settings.registry_ttl_seconds
        reads = f"A running one reads the files {f'every {every:g} s' if every else 'when told to'}"
        message = f"not refreshed: {error}. {reads}, at once on `rampgate refresh --http ADDRESS` or SIGHUP"
        return {"outcome": "unreachable", "config_hash": None, "message": message}
    message = f"{done.outcome}: {done.message}"
    if done.config_hash != registry.config_hash:
        message += f"; it does not serve what was synced ({registry.config_hash}): are the files there the same?"
    return {"outcome": done.outcome, "config_hash": done.config_hash, "message": message}
