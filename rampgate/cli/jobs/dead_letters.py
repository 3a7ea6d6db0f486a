"""What the `dead-letters` commands do: read, judge, show; and replay, asked for on a terminal.

A moment as a person types it: how long ago (`90s`, `2h`, `7d`), or an ISO 8601 time.

From flags to a filter, and from a name or a place to one letter.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import typer

from agents.ports import Unavailable
from rampgate.cli.jobs import dead_letter_view as view
from rampgate.console import Failure, print_json
from rampgate.logs import configure_logs
from rampgate.settings import load_settings
from rampgate.wiring import AGENTS, Parts, make_parts
from schemas.dead_letter_answers import Letter, ReplayAnswer, read_letter
from schemas.outcomes import Cause
from schemas.settings import parse_seconds
from schemas.topics import CONSUMED, PRODUCED, Topics
from streams.dead_letters.listing import Listing, answer_of
from streams.dead_letters.reader import LetterFilter, Progress, partitions_of, read_letters
from streams.dead_letters.replay import Outcome, Replay
from streams.dead_letters.replay_ledger import ReplayLedger
from streams.dead_letters.states import LetterStates


def parse_moment(text: str | None, flag: str, now_ms: int) -> int | None:
    """Milliseconds since 1970; None for None. A time without a zone is UTC. Raises Failure naming the flag."""
    if text is None:
        return None
    try:
        return now_ms - parse_seconds(text) * 1000
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Failure(
            f"{flag}: {text[:64]!r} is neither a duration like 2h nor an ISO 8601 time like 2026-03-01T12:00Z"
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def letter_filter(
    topics: Topics,
    causes: Sequence[str] | None,
    since: str | None,
    until: str | None,
    names: Sequence[str] | None,
    key: str | None,
    stage: str | None,
    replay_id: str | None,
) -> LetterFilter:
    """Raises Failure naming the flag that is wrong."""
    now = time.time_ns() // 1_000_000
    known = {cause.value: cause for cause in Cause}
    for cause in causes or ():
        if cause not in known:
            raise Failure(f"--cause: there is none called {cause[:64]!r}; there are {', '.join(known)}")
    return LetterFilter(
        causes=frozenset(known[cause] for cause in causes or ()),
        topics=frozenset(full_name(topics, name) for name in names or ()),
        key=key,
        stage=stage,
        replay_id=checked_id(replay_id, "--replay-id") if replay_id is not None else None,
        since=parse_moment(since, "--since", now),
        until=parse_moment(until, "--until", now),
    )


def full_name(topics: Topics, name: str) -> str:
    """A topic of ours by its short name gets the prefix; any other name stays as it is."""
    return topics[name] if name in CONSUMED + PRODUCED else name


def checked_id(text: str, flag: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise Failure(
            f"{flag}: {text[:64]!r} is no replay id (a UUID); `rampgate dead-letters list` has them"
        ) from None


async def find(parts: Parts, text: str, progress: Progress) -> tuple[Letter, list[str]]:
    """The letter by its own place, by the place of the record it carries, or by replay id; of several the one of the
    last attempt, and where the others lie. Raises Failure when there is none."""
    topic = parts.topics["dead-letters"]
    if "/" in text:
        name, *rest = text.rsplit("/", 2)
        if len(rest) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in rest):
            raise Failure(f"{text[:128]!r} is no place: give topic/partition/offset, such as {topic}/0/12")
        partition, offset = map(int, rest)
        if full_name(parts.topics, name) == topic:
            (record,) = await parts.records.fetch([(topic, partition, offset)])
            if record is None:
                raise Failure(f"{topic}/{partition} holds no record at offset {offset}")
            return read_letter(record), []
        wanted = LetterFilter(came_from=f"{full_name(parts.topics, name)}/{partition}/{offset}")
    else:
        wanted = LetterFilter(replay_id=checked_id(text, "the letter"))
    best: Letter | None = None
    places: list[str] = []
    async for chunk in read_letters(parts.access, topic, wanted, progress):
        places += [letter.place for letter in chunk]
        best = max([best, *chunk] if best is not None else chunk, key=lambda one: (one.attempts, one.failed_at))
    if best is None:
        raise Failure(f"there is no dead letter for {text}; `rampgate dead-letters list` shows what there is")
    return best, [place for place in places if place != best.place]


DAY_MS = 86_400_000


class Asked(NamedTuple):
    """The flags that choose letters, as typed."""

    cause: Sequence[str] | None
    since: str | None
    until: str | None
    topic: Sequence[str] | None
    key: str | None
    stage: str | None
    replay_id: str | None


class Terms(NamedTuple):
    """How to replay. `rate` in records a second; 0 for no limit, as for `limit`."""

    rate: float
    max_attempts: int
    limit: int
    dry_run: bool
    yes: bool


async def list_letters(asked: Asked, limit: int, as_json: bool, kafka: str | None, redis: str | None) -> None:
    async with opened(kafka, redis) as parts:
        wanted = letter_filter(parts.topics, *asked)
        known = await reachable(parts)
        listing = Listing(make_states(parts, known), limit)
        with view.progress_bar("reading", shown=not as_json) as progress:
            await listing.read(read_letters(parts.access, parts.topics["dead-letters"], wanted, progress))
        answer = listing.answer(states_known=known)
    if as_json:
        print_json(answer)
    else:
        view.show_list(answer)


async def show_letter(letter: str, raw: bool, as_json: bool, kafka: str | None, redis: str | None) -> None:
    async with opened(kafka, redis) as parts:
        with view.progress_bar("searching", shown=not as_json) as progress:
            found, others = await find(parts, letter, progress)
        if raw:
            sys.stdout.buffer.write(found.record.value or b"")
            sys.stdout.buffer.flush()
            return
        (standing,) = await make_states(parts, await reachable(parts)).of([found])
    answer = answer_of(found, standing)
    if as_json:
        headers = [[name, view.value_json(content)] for name, content in found.original_headers]
        print_json({**answer, "headers": headers, "value": view.value_json(found.record.value), "others": others})
    else:
        view.show_letter(found, answer, others)


async def replay_letters(asked: Asked, terms: Terms, as_json: bool, kafka: str | None, redis: str | None) -> int:
    """The exit code: 1 if some of what matched can't be replayed."""
    asks = not (terms.dry_run or terms.yes or as_json) and sys.stdin.isatty() and sys.stderr.isatty()
    async with opened(kafka, redis) as parts:
        wanted = letter_filter(parts.topics, *asked)
        go_on = True
        if asks:
            outcome = await run_replay(parts, wanted, terms._replace(dry_run=True), shown=True)
            view.show_outcome(outcome, dry_run=True, stderr=True)
            go_on = bool(outcome.replayed) and typer.confirm("Replay them?", err=True)
        if go_on:
            outcome = await run_replay(parts, wanted, terms, shown=not as_json)
            if as_json:
                print_json(replay_answer(outcome, terms.dry_run))
            else:
                view.show_outcome(outcome, dry_run=terms.dry_run)
    return 1 if outcome.refused else 0


async def run_replay(parts: Parts, wanted: LetterFilter, terms: Terms, *, shown: bool) -> Outcome:
    """One pass over the letters. Raises Failure when a part goes away, saying how far it came."""
    partitions = await partitions_of(parts.access, [parts.topics[name] for name in CONSUMED])
    replay = Replay(
        parts.producer,
        make_ledger(parts),
        make_states(parts, True),
        partitions,
        rate=terms.rate,
        max_attempts=terms.max_attempts,
        dry_run=terms.dry_run,
        limit=terms.limit,
    )
    with view.progress_bar("looking" if terms.dry_run else "replaying", shown=shown) as progress:
        try:
            return await replay.run(read_letters(parts.access, parts.topics["dead-letters"], wanted, progress))
        except Unavailable as error:
            done = f"{replay.outcome.replayed} were replayed before that; run it again for the rest"
            raise Failure(f"{error}. {done}") from error


def replay_answer(outcome: Outcome, dry_run: bool) -> ReplayAnswer:
    return ReplayAnswer(
        dry_run=dry_run,
        matched=outcome.matched,
        replayed=outcome.replayed,
        already_replayed=outcome.already,
        resolved=outcome.resolved,
        by_cause=dict(outcome.by_cause.most_common()),
        refused=[answer_of(letter, standing) for letter, standing in outcome.refusals],
        refused_total=outcome.refused,
    )


@asynccontextmanager
async def opened(kafka: str | None, redis: str | None) -> AsyncIterator[Parts]:
    """The parts; what is out of reach becomes the command's failure."""
    settings = load_settings({"kafka": kafka, "redis": redis})
    configure_logs("warning", "console")
    parts = make_parts(settings)
    try:
        yield parts
    except Unavailable as error:
        raise Failure(str(error)) from error
    finally:
        await parts.close()


async def reachable(parts: Parts) -> bool:
    """Whether Redis answers; without it a letter can still be read."""
    try:
        return bool(await parts.store.redis.ping())
    except Exception as error:
        sys.stderr.write(f"rampgate: Redis is out of reach, states are told from the letters alone: {error}\n")
        return False


def make_ledger(parts: Parts) -> ReplayLedger:
    return ReplayLedger(parts.store.redis, parts.store.prefix, 2 * parts.policy.lookback + DAY_MS)


def make_states(parts: Parts, known: bool) -> LetterStates:
    store, ledger = (parts.store, make_ledger(parts)) if known else (None, None)
    agents: Any = AGENTS
    return LetterStates(parts.topics, agents, parts.policy, parts.clock, store, ledger)
