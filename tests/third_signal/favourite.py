"""A third user signal: a user marks an answer as a favourite, or takes that back. All there is to it is this file.

`{event_id, response_id, marked: true/false, occurred_at}` on the topic `favourites`, keyed by `response_id`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from agents.codec import Bad, Decoded, Dropped, SignalEvent, load, time_ms, validate
from agents.join.batches import signal_agent
from agents.policy import Policy
from rampgate.wiring import AGENTS
from schemas.dead_letters import Record
from schemas.events import Text, Time
from schemas.outcomes import Cause, FilterReason
from schemas.signals import DECLARED, MergeRule, UserSignal, declare

FAVOURITE = UserSignal(
    kind="favourite",
    name="favourite",
    topic="favourites",
    score="user_signal_favourite",
    label="user_web",
    rule=MergeRule.LATEST,
    origin=6,
)


class FavouriteEvent(TypedDict):
    event_id: Text
    response_id: Text
    marked: bool
    occurred_at: Time


FAVOURITES = TypeAdapter(list[FavouriteEvent])


def decode(records: Sequence[Record], now: int, policy: Policy) -> Decoded[SignalEvent]:
    out: Decoded[SignalEvent] = Decoded()
    rows = []
    for index, event in load(enumerate(records), policy, out.bad):
        if isinstance(event, dict) and "marked" in event:
            rows.append((index, event))
        else:
            out.bad.append(Bad(index, Cause.UNKNOWN_SCHEMA, "not a favourite: marked is missing"))

    def build(index: int, event: FavouriteEvent) -> SignalEvent | None:
        time = time_ms(event["occurred_at"], "occurred_at", now, policy)
        if time < now - policy.lookback:
            out.dropped.append(Dropped(index, FilterReason.OUT_OF_WINDOW, time))
            return None
        tie = zlib.crc32(event["event_id"].encode()) & 0xFFFF
        return SignalEvent(index, event["response_id"], int(event["marked"]), time, tie=tie)

    validate(FAVOURITES, rows, build, out)
    return out


AGENT = signal_agent(FAVOURITE, decode)


def register() -> None:
    """What a signal of the product does once, in `schemas.signals` and in `rampgate.wiring`."""
    declare(FAVOURITE)
    AGENTS[FAVOURITE.topic] = AGENT


@contextmanager
def registered() -> Iterator[None]:
    register()
    try:
        yield
    finally:
        del DECLARED[FAVOURITE.kind], AGENTS[FAVOURITE.topic]
