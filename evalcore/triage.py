"""Opens triage items, hands them to owners and closes them; says which are overdue (PC5 §5.7). Pure.

An item is a quality judge's floor breach that a person has to look at within a day. Nothing closes by itself, neither
with the breach nor with time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from evalcore.gates.regression import SOURCE, Response
from schemas.checks.triage import TriageChange, TriageDecision, TriageItem, TriageState, TriageStep
from schemas.dead_letters import clean


class Refused(ValueError):
    """The item is not in a state for this, or there is no such item; the message says what to do."""


def opened(items: Mapping[str, TriageItem], response: Response, since: int) -> TriageItem | None:
    """Returns the item that a breach opens. None where one answers it: an item about the same breach that is not
    closed, or is younger than `since` (ms), so that neither a repetition nor an emptied Redis opens a second."""
    breach = response.breach
    for item in items.values():
        young = item.opened.timestamp() * 1000 >= since
        if item.breach == breach.key and (item.state is not TriageState.CLOSED or young):
            return None
    at = datetime.fromisoformat(breach.detected_at)
    name = hashlib.sha256(f"{breach.key} {breach.detected_at}".encode()).hexdigest()[:12]
    return TriageItem(
        item_id=f"t-{name}",
        breach=breach.key,
        judge_id=breach.judge_id,
        vertical=breach.vertical,
        agent_id=breach.agent_id,
        agent_version=breach.agent_version,
        score=breach.score,
        floor=breach.floor,
        n=breach.n,
        opened=at,
        due=datetime.fromisoformat(response.triage_due or breach.detected_at),
        state=TriageState.OPEN,
        history=(TriageChange(at=at, by=SOURCE, step=TriageStep.OPENED),),
    )


def known(items: Mapping[str, TriageItem], item_id: str) -> TriageItem:
    """Returns the item. Raises Refused."""
    if item_id not in items:
        raise Refused(f"there is no triage item {item_id!r}; `rampgate triage --all` has them all")
    return items[item_id]


def taken(item: TriageItem, owner: str, by: str, note: str, now: datetime, *, over: bool = False) -> TriageItem:
    """Returns the item with its owner. `over` takes it from another owner. Raises Refused."""
    if item.state is TriageState.CLOSED:
        raise Refused(f"{item.item_id} is closed since {item.history[-1].at.isoformat()}: {item.decision}")
    if item.state is TriageState.OWNED and item.owner != owner and not over:
        raise Refused(f"{item.item_id} is {item.owner}'s; --over takes it over")
    if not owner.strip():
        raise Refused("an owner has a name: --owner NAME")
    said = f"owner: {owner}. {note}" if owner != by else note
    return _with(item, TriageStep.TAKEN, by, said, now, state=TriageState.OWNED, owner=owner)


def closed(item: TriageItem, decision: TriageDecision, by: str, note: str, now: datetime) -> TriageItem:
    """Returns the item, decided. Raises Refused where no one owns it, or nothing is said about it."""
    if item.state is TriageState.CLOSED:
        raise Refused(f"{item.item_id} is closed already: {item.decision}")
    if item.state is TriageState.OPEN:
        raise Refused(f"{item.item_id} has no owner: `rampgate triage {item.item_id}` takes it")
    if not note.strip():
        raise Refused("say what was found: --note TEXT")
    return _with(item, TriageStep.CLOSED, by, note, now, state=TriageState.CLOSED, decision=decision)


def reminded(item: TriageItem, told: str, now: datetime) -> TriageItem:
    """Returns the item with the note that its reminder went to `told`, so that it is the only one."""
    return _with(item, TriageStep.REMINDED, SOURCE, f"told {told}", now)


def overdue(items: Iterable[TriageItem], now: datetime) -> list[TriageItem]:
    """Returns what is not closed although it is due, the oldest first."""
    late = [item for item in items if item.state is not TriageState.CLOSED and item.due <= now]
    return sorted(late, key=lambda item: (item.due, item.item_id))


def newer(one: TriageItem, other: TriageItem | None) -> bool:
    """Tells whether this record of an item counts, and not the other."""
    return other is None or len(one.history) > len(other.history)


def reminder(item: TriageItem) -> str:
    """Returns the text that tells operators of an overdue item, on one line whatever its names hold."""
    who = " ".join(clean(part, 100) for part in (item.agent_id, item.agent_version))
    where = f" in {clean(item.vertical, 100)}" if item.vertical else ""
    owner = f"{clean(item.owner, 100)} has it" if item.owner else "no one has taken it"
    return (
        f"Triage {item.item_id} was due at {item.due.astimezone(UTC).isoformat(timespec='minutes')} and {owner}: "
        f"{item.judge_id} is below its floor for {who}{where} ({item.score:.4g} over {item.n} scores, floor "
        f"{item.floor:g}). `rampgate triage {item.item_id}`, then the same with --decision and --note."
    )


def _with(item: TriageItem, step: TriageStep, by: str, note: str, now: datetime, **changes: object) -> TriageItem:
    change = TriageChange(at=now, by=by, step=step, note=note.strip())
    return item.model_copy(update={**changes, "history": (*item.history, change)})
