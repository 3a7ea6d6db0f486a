"""Shows judges, their changes and the plan of a sync as tables and lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from rich.console import Console

from evalcore.registry.rule_diff import Change
from rampgate.console import plain
from rampgate.registry.rule_sync import VerticalSync, judge_of
from rampgate.tables import make_table
from schemas.answers import ServedJudge
from schemas.counting import counted
from schemas.judges import Classification, Milestone

SHORT = 60
WIDE = 140


def show_judges(judges: Sequence[ServedJudge], title: str, today: date) -> None:
    heads = ("Class", "Scale", "Thresholds", "Floor", "Tolerance", "Enforcement", "Provenance", "Due")
    table = make_table(plain(title), "Judge", *heads)
    table.columns[0].no_wrap = table.columns[-1].no_wrap = True
    for judge in judges:
        safety, of_floor = judge.classification is Classification.SAFETY_REFUSAL, judge.floor_provenance or {}
        due = min(str(judge.recalibration_due), of_floor.get("recalibration_due", str(date.max)))
        table.add_row(
            plain(judge.id) if judge.enabled else f"[dim]{plain(judge.id)} (off)[/]",
            "[bold]safety[/]" if safety else "quality",
            str(judge.score_type),
            _each(_score(judge.thresholds[milestone]) for milestone in Milestone),
            f"{judge.floor:g}",
            f"{judge.tolerance:g}",
            _each(judge.enforcement[milestone] for milestone in Milestone),
            plain(judge.baseline_source + (f", {judge.calibration_ref}" if judge.calibration_ref else "")),
            f"[red]{due} (overdue)[/]" if due < str(today) else due,
        )
    console = Console()
    console.width = console.width if console.is_terminal else WIDE
    console.print(table)
    console.print("Thresholds and enforcement: pre_merge / pre_ramp / pre_full, one where all are equal", style="dim")


def seen_by(vertical: str | None) -> str:
    return f"as {vertical} sees them" if vertical else "as the platform has them"


def _each(values: Iterable[str]) -> str:
    """The values by milestone, or one where all are equal."""
    found = list(values)
    return found[0] if len(set(found)) == 1 else " / ".join(found)


def _score(value: bool | float) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def show_changes(changes: Iterable[Change], title: str, console: Console | None = None) -> None:
    """Print a line for each changed value; a change that platform and verticals share is printed once."""
    console = console or Console(soft_wrap=True, highlight=False)
    told: dict[tuple[str, str, str, str], list[str]] = {}
    for one in changes:
        key = (one.judge, one.field, repr(one.before), repr(one.after))
        told.setdefault(key, []).append(one.vertical or "platform")
    many = counted(len(told), "change") if told else "no judge has changed"
    console.print(f"{plain(title)}: {many}")
    for (judge, name, before, after), seen in told.items():
        who = "" if "platform" in seen else f" for {plain(', '.join(seen))}"
        if name:
            was, now = _from_where_they_part(before, after)
            what = f"{plain(name)}: {plain(was, SHORT)} → {plain(now, SHORT)}"
        else:
            what = "[green]new[/]" if before == "None" else "[red]gone[/]"
        console.print(f"  [bold]{plain(judge)}[/]{who}: {what}")


def _from_where_they_part(before: str, after: str) -> tuple[str, str]:
    """The ends of two texts from where they differ, with a few characters before it."""
    alike = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), 0)
    start = alike - SHORT // 3
    return (f"…{before[start:]}", f"…{after[start:]}") if start > 0 else (before, after)


def show_plan(parts: Iterable[VerticalSync], console: Console) -> None:
    for part in parts:
        head = f"[bold]{plain(part.vertical.name)}[/], project {plain(part.vertical.project)} in Opik"
        if part.trouble:
            console.print(f"{head}: [red]{plain(part.trouble, 1_000)}[/]")
            continue
        plan, live = part.plan, part.vertical.live_judge == "opik"
        counts = f"{len(plan.create)} to create, {len(plan.update)} to update, {len(plan.unchanged)} unchanged"
        console.print(
            f"{head}: {counts}; Opik {'judges there' if live else 'does not judge there: rules are disabled'}"
        )
        for rule in plan.create:
            console.print(f"  [green]create[/] {plain(judge_of(rule))}")
        for one in plan.update:
            console.print(f"  [yellow]update[/] {plain(judge_of(one.rule))}: {plain(', '.join(one.changes))}")
        for left in plan.left_alone:
            console.print(f"  [dim]leave {plain(left.name)}: {plain(left.reason)}[/]")


def show_done(parts: Iterable[VerticalSync], console: Console) -> None:
    for part in parts:
        console.print(f"[bold]{plain(part.vertical.name)}[/]: {len(part.written)} written")
        for one in part.failed:
            console.print(f"  [red]refused[/] {plain(one.judge)}: {plain(one.reason, 1_000)}")
        if part.trouble:
            console.print(f"  [red]{plain(part.trouble, 1_000)}[/]")
