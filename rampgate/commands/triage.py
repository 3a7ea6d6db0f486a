"""Runs `rampgate triage`: lists, takes and closes quality regressions that wait for an owner (PC5 §5.7)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure, user
from rampgate.report.model import Cell, Report, Section

if TYPE_CHECKING:
    from streams.alerts.triage_log import TriageLog

HEADS = ("Item", "Due", "Late", "State", "Owner", "Judge", "Agent", "Score", "Floor")


def triage_report(told: Mapping[str, Any]) -> Report:
    """The report of the list, or of one item with its history."""
    if "items" in told:
        late, items = told["overdue"], told["items"]
        result = f"{late} overdue" if late else f"{len(items)} to look at"
        return Report("Triage", result, "fail" if late else "pass", [Section("", HEADS, [*map(_row, items)])])
    history = [[_time(one["at"]), one["step"], one["by"], one["note"]] for one in told["history"]]
    section = Section("", ("At", "Step", "By", "Note"), history)
    return Report(told["item_id"], f"{_state(told)}, due {_time(told['due'])}", "pass", [section])


def _row(one: Mapping[str, Any]) -> Sequence[Any]:
    agent = " ".join(filter(None, (one["agent_id"], one["agent_version"], one["vertical"])))
    late = Cell("overdue", "fail") if one["overdue"] else ""
    owner = one["owner"] or "-"
    return (
        one["item_id"],
        _time(one["due"]),
        late,
        _state(one),
        owner,
        one["judge_id"],
        agent,
        one["score"],
        one["floor"],
    )


def _state(one: Mapping[str, Any]) -> str:
    return f"{one['state']}: {one['decision']}" if one["decision"] else str(one["state"])


def _time(text: str) -> str:
    return text[:16].replace("T", " ")


@command(triage_report, flags="kafka redis")
async def triage(
    context: Context,
    item: Annotated[str | None, Argument(help="The id of the item to take or close; without it all are listed")] = None,
    owner: Annotated[str | None, Option(help="Who looks at it; default: you")] = None,
    decision: Annotated[
        Literal["agent", "judge", "false_alarm", "accepted"] | None, Option(help="What came of it: closes the item")
    ] = None,
    note: Annotated[str, Option(help="A word for those who read it later; to close, what was found")] = "",
    over: Annotated[bool, Option("--over", help="Take it from another owner")] = False,
    everything: Annotated[bool, Option("--all", help="List closed items, too")] = False,
) -> Document:
    """List what is to be looked at, by whom and until when, the most urgent first; take an item, or close it.

    An item that is named is taken, by you or by --owner, and with --decision closed: that needs an owner and a --note.
    Nothing else closes one. Who did it is kept with it. Exit code 1 if any that is listed is overdue.

    Example: rampgate triage t-4f0c1b9a7d2e --decision agent --note "prompt 12 is rolled back"
    """
    from datetime import UTC, datetime

    from evalcore import triage as items
    from schemas.checks.triage import TriageDecision, TriageState

    if item is None and (owner or decision or note or over):
        raise Failure("ITEM: say which item to take or close; `rampgate triage` lists them")
    if decision is not None and (owner or over):
        raise Failure("--decision: closes the item, so --owner and --over must not be given; take it first")
    async with _log(context) as log:
        if item is None:
            found, now = await log.items(), datetime.now(UTC)
            late = {one.item_id for one in items.overdue(found.values(), now)}
            wanted = [one for one in found.values() if everything or one.state is not TriageState.CLOSED]
            wanted.sort(key=lambda one: (one.state is TriageState.CLOSED, one.due, one.item_id))
            listed = [{**one.model_dump(mode="json"), "overdue": one.item_id in late} for one in wanted]
            return Document({"items": listed, "overdue": len(late)}, 1 if late else 0)
        by = user()
        async with log.alone() as found:
            now = datetime.now(UTC)
            try:
                known = items.known(found, item)
                if decision is not None:
                    done = items.closed(known, TriageDecision(decision), by, note, now)
                else:
                    done = items.taken(known, owner or by, by, note, now, over=over)
            except items.Refused as error:
                raise Failure(str(error)) from error
            await log.write(done)
    return Document(done.model_dump(mode="json"))


@asynccontextmanager
async def _log(context: Context) -> AsyncIterator[TriageLog]:
    from rampgate.worker.live_judging import triage_log

    async with context.parts(soon=True) as parts:
        yield triage_log(parts)
