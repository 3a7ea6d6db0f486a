"""Sweeps the thumbs table, the rerolls topic and Opik's traces into the join's state: PF-9's V1, a scheduled batch
(FR-6).

What the state has already is not published and changes nothing, so a sweep beside the stream, or a second one, doubles
nothing. A sweep that was cut short goes on at the page it had reached.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from agents import rerolls, thumbs
from agents.join.batches import Agent
from agents.join.due_turns import revisit
from agents.join.step_data import Report
from agents.join.sweeping import Placed, bring, notice, peek, still_waiting
from agents.keys import turn_keys
from agents.policy import Policy
from agents.ports import Ports, Unavailable
from schemas.dead_letters import MadeRecord, Record, clean
from schemas.signals import REROLL, THUMBS, UserSignal
from schemas.topics import Topics
from streams.dynamodb.client import Busy, Dynamo
from streams.kafka.client import Producer
from streams.opik.traces import OpikTraces
from streams.retry import Retry, logged
from streams.sweep.events import Sessions, reroll_event, thumb_event
from streams.sweep.log import SegmentPlace

log = structlog.get_logger(__name__)
PAGE = 500
REVISIT_AT_ONCE = 5_000
DUE_AT_ONCE = 500
LEASE_MS = 60_000
RETRY = Retry(longest=10.0, tries=9)


@dataclass
class Tally:
    """What a sweep did, counted in items, turns and scores. `rerolls_new`: of the topic, those that the state lacked;
    `rerolls_found`: derived from traces."""

    scanned: int = 0
    older: int = 0
    unchanged: int = 0
    published: int = 0
    bad: int = 0
    traces: int = 0
    rerolls_new: int = 0
    rerolls_found: int = 0
    rerolls_published: int = 0
    scores_written: int = 0
    waiting: int = 0


@dataclass
class Sweep:
    """One sweep. `since` in ms. `dry`: publish, write and save nothing. `observe` gets each step's report. `now` is
    asked for the time (ms) before each page, and raises Unavailable where it can't be trusted: what is read is
    published with that time, and later changes would seem older than a wrong one. `heard` gives the rerolls topic's
    records since a time, in pages."""

    dynamo: Dynamo
    ports: Ports
    traces: OpikTraces
    sender: Producer
    policy: Policy
    topics: Topics
    since: int
    now: Callable[[], Awaitable[int]]
    heard: Callable[[int], AsyncIterator[Sequence[Record]]]
    dry: bool = False
    observe: Callable[[Report], None] = lambda report: None
    tally: Tally = field(default_factory=Tally)
    waiting: set[str] = field(default_factory=set)

    async def rerolls(self) -> None:
        """Read the rerolls topic and Opik's turns since `since`: join both, and derive the rerolls that no event
        reported."""
        async for records in self.heard(self.since):
            await self.now()
            self.tally.rerolls_new += await self._take(rerolls.AGENT, REROLL, records)
        sessions = Sessions(self.policy)
        longest = max([self.policy.reroll_window, *self.policy.reroll_windows.values()])
        async for page in self.traces.turns(self.since - longest):
            await self.now()
            self.tally.traces += len(page)
            sessions.add(page)
            if page and not self.dry:
                self._note(await notice(page, self.ports, self.policy, self.topics))
        topic = self.topics["rerolls"]
        events = [
            reroll_event(found, sessions.vertical(found.before.response_id), topic) for found in sessions.rerolls()
        ]
        self.tally.rerolls_found = len(events)
        for start in range(0, len(events), PAGE):
            new = await self._take(rerolls.AGENT, REROLL, events[start : start + PAGE])
            self.tally.rerolls_published += new

    async def scan(self, segment: int, segments: int, place: SegmentPlace) -> None:
        """Read one segment of the table from `place` to its end, and move `place` after each page."""
        while not place.done:
            read_at = await self.now()  # a change made while the page is read is newer than the reading
            items, following = await self._page(segment, segments, place.key)
            await self._items(items, read_at)
            await place.move(following)

    async def finish_waiting(self) -> None:
        """Visit the turns that wait: seek their traces, write what was withheld, give up what waited too long. Also
        visits turns of earlier sweeps that are due by now, since a deployment may run sweeps only."""
        if self.dry:
            return
        ids, now = sorted(self.waiting), await self.now()
        for start in range(0, len(ids), REVISIT_AT_ONCE):
            part = ids[start : start + REVISIT_AT_ONCE]
            self._note(await revisit(part, self.ports, self.policy, self.topics, self._rebuilding))
        while due := await self.ports.store.claim_due(now, DUE_AT_ONCE, LEASE_MS):
            self._note(await revisit(due, self.ports, self.policy, self.topics, self._rebuilding))
        stored = await self.ports.store.read(turn_keys(ids))
        self.tally.waiting = still_waiting(stored)

    async def _rebuilding(self) -> bool:
        await self.now()  # raises Unavailable while a lost state is rebuilt, and the step writes nothing
        return False

    async def _items(self, items: list[dict[str, Any]], read_at: int) -> None:
        tally, events = self.tally, []
        tally.scanned += len(items)
        for item in items:
            try:
                events.append(thumb_event(item, read_at, self.policy.attributes, self.topics["thumbs"]))
            except (ValueError, AttributeError) as error:
                tally.bad += 1
                log.warning("sweep_bad_item", reason=clean(str(error)))
        new = await self._take(thumbs.AGENT, THUMBS, events)
        tally.published += new  # not in one line with the await: segments run beside one another

    async def _take(self, agent: Agent, signal: UserSignal, events: Sequence[Record]) -> int:
        """Bring the events that the state lacks through the join, published first where Kafka lacks them too; returns
        their number."""
        decoded = agent.decode(events, self.ports.clock.now_ms(), self.policy)
        for bad in decoded.bad:
            self.tally.bad += 1
            log.warning("sweep_bad_item", reason=bad.detail)
        items = [item for item in decoded.items if item.time >= self.since]
        self.tally.older += len(decoded.dropped) + len(decoded.items) - len(items)
        known = await peek(items, signal, self.ports)
        self.waiting |= {item.response_id for item, one in zip(items, known, strict=True) if one.waits}
        news = [item for item, one in zip(items, known, strict=True) if one.news]
        self.tally.unchanged += len(items) - len(news)
        if news and not self.dry:
            sent = await self._sent([events[item.index] for item in news])
            placed = [Placed(item, record) for item, record in zip(news, sent, strict=True)]
            report, waiting = await bring(placed, signal, self.ports, self.policy, self.topics)
            self.waiting |= waiting
            self._note(report)
        return len(news)

    async def _sent(self, records: Sequence[Record]) -> Sequence[Record]:
        unsent = [record for record in records if isinstance(record, MadeRecord)]
        if not unsent:
            return records
        places = await self.sender.send([(record.topic, record.key, record.value, ()) for record in unsent])
        return [replace(one, partition=at, offset=offset) for one, (_, at, offset) in zip(unsent, places, strict=True)]

    async def _page(
        self, segment: int, segments: int, start: dict[str, Any] | None
    ) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """A page of the table with the attributes that we use, and the key to go on from. Raises Unavailable."""
        names = list(dict.fromkeys(vars(self.policy.attributes).values()))
        options: dict[str, Any] = {
            "TableName": self.dynamo.table,
            "Segment": segment,
            "TotalSegments": segments,
            "ConsistentRead": True,
            "Limit": PAGE,
            "ProjectionExpression": ", ".join(f"#a{at}" for at in range(len(names))),
            "ExpressionAttributeNames": {f"#a{at}": name for at, name in enumerate(names)},
        }
        if start:
            options["ExclusiveStartKey"] = start

        async def read() -> Any:
            return await self.dynamo.call(lambda db, _: db.scan(**options))

        try:
            answer = await RETRY.call(read, Busy, noticed=logged("sweep_waiting"))
        except Busy as error:
            raise Unavailable(f"DynamoDB: {clean(str(error))}") from error
        return list(answer["Items"]), answer.get("LastEvaluatedKey")

    def _note(self, report: Report) -> None:
        self.tally.scores_written += sum(report.written.values())
        self.observe(report)
