"""Lists, takes and closes triage items for the command line (PC5 §5.7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from rich.console import Console

from agents.ports import Unavailable
from evalcore import triage
from rampgate.console import Failure, plain, run, user
from rampgate.logs import configure_logs
from rampgate.settings_sources import load_settings
from rampgate.tables import make_table
from rampgate.wiring import make_parts
from rampgate.worker.live_judging import triage_log
from schemas.checks.triage import TriageDecision, TriageItem, TriageState
from streams.alerts.triage_log import TriageLog
from streams.redis.state import RedisStore

T = TypeVar("T")


@dataclass(frozen=True)
class Listed:
    """Items with the most urgent first, and the ids of those that are `overdue`."""

    items: Sequence[TriageItem]
    overdue: frozenset[str]

    def document(self) -> dict[str, Any]:
        items = [{**one.model_dump(mode="json"), "overdue": one.item_id in self.overdue} for one in self.items]
        return {"items": items, "overdue": len(self.overdue)}


def listed(flags: Mapping[str, Any], everything: bool) -> Listed:
    """The items that are not closed, or `everything`. Raises Failure."""
    found = _with_log(flags, lambda items: items.items())
    late = triage.overdue(found.values(), datetime.now(UTC))
    wanted = [one for one in found.values() if everything or one.state is not TriageState.CLOSED]
    ordered = sorted(wanted, key=lambda one: (one.state is TriageState.CLOSED, one.due, one.item_id))
    return Listed(ordered, frozenset(one.item_id for one in late))


def take(flags: Mapping[str, Any], item_id: str, owner: str | None, note: str, *, over: bool) -> TriageItem:
    """The item with its owner, written down. Raises Failure."""
    by = user()
    return _changed(flags, item_id, lambda item, now: triage.taken(item, owner or by, by, note, now, over=over))


def close(flags: Mapping[str, Any], item_id: str, decision: str, note: str) -> TriageItem:
    """The item, decided and written down. Raises Failure."""
    try:
        decided = TriageDecision(decision)
    except ValueError:
        raise Failure(f"--decision: {decision[:40]!r} is none of {', '.join(TriageDecision)}") from None
    by = user()
    return _changed(flags, item_id, lambda item, now: triage.closed(item, decided, by, note, now))


def _changed(
    flags: Mapping[str, Any], item_id: str, change: Callable[[TriageItem, datetime], TriageItem]
) -> TriageItem:
    async def job(items: TriageLog) -> TriageItem:
        async with items.alone() as found:
            done = change(triage.known(found, item_id), datetime.now(UTC))
            await items.write(done)
            return done

    return _with_log(flags, job)


def _with_log(flags: Mapping[str, Any], job: Callable[[TriageLog], Awaitable[T]]) -> T:
    settings = load_settings(dict(flags))
    configure_logs("error", "console")

    async def work() -> T:
        parts = make_parts(settings, registry=False)
        try:
            await parts.store.close()
            parts.store = RedisStore(settings.redis_url, settings.redis_prefix, timeout=3.0, tries=2)
            return await job(triage_log(parts))
        finally:
            await parts.close()

    try:
        return run(work)
    except (triage.Refused, Unavailable) as error:
        raise Failure(str(error)) from error


def show_list(found: Listed) -> None:
    table = make_table(None, "Item", "Due", "State", "Owner", "Judge", "Agent", ">Score", ">Floor")
    for one in found.items:
        due = f"{one.due:%Y-%m-%d %H:%M}" + (" [red]overdue[/]" if one.item_id in found.overdue else "")
        state = one.state if one.decision is None else f"{one.state}: {one.decision}"
        agent = " ".join(filter(None, (one.agent_id, one.agent_version, one.vertical)))
        cells = (state, one.owner or "-", one.judge_id, agent, f"{one.score:.4g}", f"{one.floor:g}")
        table.add_row(plain(one.item_id), due, *map(plain, cells))
    Console(highlight=False, soft_wrap=True).print(table)


def show_item(item: TriageItem) -> None:
    console = Console(highlight=False, soft_wrap=True)
    decided = f", {item.decision}" if item.decision is not None else ""
    console.print(f"{plain(item.item_id)}: {item.state}{decided}, due {item.due:%Y-%m-%d %H:%M}")
    for change in item.history:
        said = f": {plain(change.note, 500)}" if change.note else ""
        console.print(f"  {change.at:%Y-%m-%d %H:%M} {change.step} by {plain(change.by)}{said}")
