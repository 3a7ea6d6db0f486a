"""Keeps Opik right where a write without an answer is applied late, after a newer one of the same score.

A turn notes until when that may happen (`Turn.doubt_until`). `agents.join.step.record` notes it after a write of
unknown outcome, and for records that a worker which died may have handled. What no consumer brought is not read again
after a crash, so its steps note it before they write. When the time is over, the scores are compared with what Opik
holds, and written where they differ.

Where a later trace of the same response takes the signals over, the scores on the other one are deleted at once, and
once more when that time is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agents.join.step import Planned, StepContext, turn_expiry
from agents.join.step_data import Report
from agents.join.turn import DISTRUSTED, MAYBE, Turn, code_of, decode_turn, encode_turn, trace_text
from agents.keys import turn_key
from agents.ports import UNSURE, Change, Ports, Refusal, Write
from schemas.outcomes import Cause
from schemas.signals import DECLARED

GONE = Cause.OPIK_UNAVAILABLE


async def announce(context: StepContext, planned: Planned, ports: Ports) -> bool:
    """Note in the stored turns that they are about to be written, so that a death on the way leaves them to be looked
    at; the step's own record takes the note back. Returns False where another worker has changed one of them."""
    change, until = Change(), ports.clock.now_ms() + context.policy.doubt
    announced = {}
    for response_id, snapshot, _ in planned:
        turn = decode_turn(snapshot.stored) if snapshot.stored else Turn()
        turn.doubt_until = until
        key = turn_key(response_id)
        announced[response_id] = encode_turn(turn)
        change.checks[key] = snapshot.stored
        change.sets[key] = (announced[response_id], turn_expiry(turn, context.now, context.policy))
        change.due_by[response_id] = until
    if await ports.store.apply(change):
        return False
    for response_id, snapshot, _ in planned:
        snapshot.stored = announced[response_id]
        if response_id in context.retry_state.forced:
            # Taking the note back could store what another step has read, and its check would miss this write.
            snapshot.turn.rewritten = (snapshot.turn.rewritten + 1) % 100
    return True


async def compare(context: StepContext, response_ids: Iterable[str], ports: Ports) -> None:
    """Note in these turns what Opik holds, so that what differs is written; nothing that was sent before comes any
    more. Where Opik can't tell, or holds a mirrored name otherwise, every score is written."""
    snapshots = {response_id: context.turns[response_id] for response_id in response_ids}
    held = await ports.traces.held({response_id: one.turn.trace_id for response_id, one in snapshots.items()})
    for response_id, snapshot in snapshots.items():
        scores, codes = held.get(response_id), dict.fromkeys(DECLARED, MAYBE)
        for declared in DECLARED.values():
            mirrored = context.policy.mirror_legacy_names and declared.legacy_name
            if scores is not None and (not mirrored or scores.get(declared.score) == scores.get(mirrored)):
                value = scores.get(declared.score)
                codes[declared.kind] = 0 if value is None else code_of(declared, value)
        snapshot.turn.doubt_until = 0
        note_held(snapshot.turn, codes, context.report)
        snapshot.touched = True


async def clear_left(context: StepContext, response_ids: Iterable[str], ports: Ports) -> None:
    """Delete our scores from other traces of these responses. The traces are forgotten once nothing that was sent
    before can come any more; where Opik does not answer, the turns are looked at again."""
    names = [(signal.label, signal.score) for signal in DECLARED.values()]
    if context.policy.mirror_legacy_names:
        names += [(signal.label, signal.legacy_name) for signal in DECLARED.values() if signal.legacy_name]
    turns = {response_id: context.turns[response_id] for response_id in response_ids}
    owners, writes = [], []
    for response_id, snapshot in turns.items():
        turn = snapshot.turn
        for trace in turn.left_traces:
            writes += [Write(trace_text(trace), turn.project, name, None, label) for label, name in names]
            owners += [response_id] * len(names)
    outcomes = await ports.scores.write(writes) if context.policy.write else [UNSURE] * len(writes)
    held_up = {
        owner
        for owner, outcome in zip(owners, outcomes, strict=True)
        if outcome is UNSURE or (isinstance(outcome, Refusal) and (outcome.unsure or outcome.cause is GONE))
    }
    for response_id, snapshot in turns.items():
        turn = snapshot.turn
        if response_id in held_up:
            turn.doubt_until, snapshot.touched = ports.clock.now_ms() + context.policy.doubt, True
        elif turn.doubt_until <= context.now:
            turn.left, snapshot.touched = b"", True


def note_held(turn: Turn, codes: Mapping[str, int], report: Report) -> bool:
    """Note what Opik was found to hold of each kind; returns whether that was not what the turn knew."""
    news = False
    for kind in DECLARED:
        code, known = codes.get(kind, 0), turn.wrote(kind)
        if code != known:
            news = True
            turn.note(kind, code)
            if not {MAYBE, DISTRUSTED} & {code, known}:
                report.late[kind] = report.late.get(kind, 0) + 1
    return news
