"""Lists, shows and replays dead letters for the `dead-letters` commands; asks on a terminal before it replays."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import typer

from agents.ports import Unavailable
from rampgate.cli.jobs.state import dead_letter_view as view
from rampgate.console import BadQuery, Failure, print_json
from rampgate.logs import configure_logs
from rampgate.progress import progress
from rampgate.queries import (
    DeadLetterQuery,
    dead_letter_filter,
    dead_letter_ledger,
    dead_letter_states,
    full_topic_name,
    parse_replay_id,
)
from rampgate.settings_sources import load_settings
from rampgate.wiring import Parts, make_parts
from schemas.dead_letter_answers import ReplayAnswer, StoredDeadLetter, parse_dead_letter
from schemas.seals import Seal
from schemas.topics import consumed
from streams.dead_letters.listing import Listing, answer_of
from streams.dead_letters.reader import DeadLetterFilter, Progress, read_dead_letters
from streams.dead_letters.replay import Replay, ReplayResult
from streams.kafka.reading import partitions_of


class ReplayTerms(NamedTuple):
    """Limits of a replay. `rate` is in records a second; 0 means no limit, for `limit` too."""

    rate: float
    max_attempts: int
    limit: int
    dry_run: bool
    yes: bool


async def list_dead_letters(
    query: DeadLetterQuery, limit: int, as_json: bool, kafka: str | None, redis: str | None
) -> None:
    async with opened(kafka, redis) as parts:
        wanted = dead_letter_filter(parts.topics, query)
        known = await reachable(parts)
        topic, seal = parts.topics["dead-letters"], await seal_of(parts, known)
        listing = Listing(dead_letter_states(parts, with_redis=known), limit)
        with progress("reading", unit="records") as shown:
            await listing.read(read_dead_letters(parts.access, topic, wanted, shown.at, seal))
        answer = listing.answer(states_known=known)
    if as_json:
        print_json(answer)
    else:
        view.show_list(answer)


async def show_dead_letter(letter: str, raw: bool, as_json: bool, kafka: str | None, redis: str | None) -> None:
    async with opened(kafka, redis) as parts:
        known = await reachable(parts)
        with progress("searching", unit="records") as shown:
            found, others = await find(parts, letter, shown.at, await seal_of(parts, known))
        if raw:
            sys.stdout.buffer.write(found.record.value or b"")
            sys.stdout.buffer.flush()
            return
        (status,) = await dead_letter_states(parts, with_redis=known).of([found])
    answer = answer_of(found, status)
    if as_json:
        headers = [[name, view.value_json(content)] for name, content in found.original_headers]
        print_json({**answer, "headers": headers, "value": view.value_json(found.record.value), "others": others})
    else:
        view.show_letter(found, answer, others)


async def replay_dead_letters(
    query: DeadLetterQuery, terms: ReplayTerms, as_json: bool, kafka: str | None, redis: str | None
) -> int:
    """Replay what matches. Exit code 1 if some of it can't be replayed."""
    asks = not (terms.dry_run or terms.yes or as_json) and sys.stdin.isatty() and sys.stderr.isatty()
    async with opened(kafka, redis) as parts:
        wanted = dead_letter_filter(parts.topics, query)
        go_on = True
        if asks:
            result = await run_replay(parts, wanted, terms._replace(dry_run=True))
            view.show_result(result, dry_run=True, stderr=True)
            go_on = bool(result.replayed) and typer.confirm("Replay them?", err=True)
        if go_on:
            result = await run_replay(parts, wanted, terms)
            if as_json:
                print_json(replay_answer(result, terms.dry_run))
            else:
                view.show_result(result, dry_run=terms.dry_run)
    return 1 if result.refused else 0


async def run_replay(parts: Parts, wanted: DeadLetterFilter, terms: ReplayTerms) -> ReplayResult:
    """Replay in one pass over the dead letters. Raises Failure, with the number done, when a part goes away."""
    partitions = await partitions_of(parts.access, [parts.topics[name] for name in consumed()])
    replay = Replay(
        parts.producer,
        dead_letter_ledger(parts),
        dead_letter_states(parts, with_redis=True),
        partitions,
        rate=terms.rate,
        max_attempts=terms.max_attempts,
        dry_run=terms.dry_run,
        limit=terms.limit,
    )
    topic, seal = parts.topics["dead-letters"], await agreed_seal(parts)
    with progress("looking" if terms.dry_run else "replaying", unit="records") as shown:
        try:
            return await replay.run(read_dead_letters(parts.access, topic, wanted, shown.at, seal))
        except Unavailable as error:
            done = f"{replay.result.replayed} were replayed before that; run it again for the rest"
            raise Failure(f"{error}. {done}") from error


def replay_answer(result: ReplayResult, dry_run: bool) -> ReplayAnswer:
    return ReplayAnswer(
        dry_run=dry_run,
        matched=result.matched,
        replayed=result.replayed,
        already_replayed=result.already,
        resolved=result.resolved,
        by_cause=dict(result.by_cause.most_common()),
        refused=[answer_of(letter, status) for letter, status in result.refusals],
        refused_total=result.refused,
    )


@asynccontextmanager
async def opened(kafka: str | None, redis: str | None) -> AsyncIterator[Parts]:
    """The parts, closed at the end. Raises Failure for a bad query or a part out of reach."""
    settings = load_settings({"kafka": kafka, "redis": redis})
    configure_logs("warning", "console")
    parts = make_parts(settings, registry=False)
    try:
        yield parts
    except BadQuery as error:
        raise Failure(error.as_option()) from error
    except Unavailable as error:
        raise Failure(str(error)) from error
    finally:
        await parts.close()


async def reachable(parts: Parts) -> bool:
    """Tells whether Redis answers; dead letters can be read without it."""
    try:
        return bool(await parts.store.redis.ping())
    except Exception as error:
        sys.stderr.write(f"rampgate: Redis is out of reach, the states come from the letters alone: {error}\n")
        return False


async def agreed_seal(parts: Parts) -> Seal:
    """The seal that a replay puts on its records. Raises Failure where the workers have another, Unavailable."""
    if await parts.sealing.differs():
        raise Failure(
            "the workers seal with another key, and would take what is replayed for records that never failed: give "
            "this command their RAMPGATE_SEAL_KEY, or none if they have none"
        )
    return await parts.sealing()


async def seal_of(parts: Parts, redis: bool) -> Seal | None:
    """The seal, None while its key is in a Redis out of reach, or in one that lets us only read."""
    if not redis and parts.settings.seal_key is None:
        return None
    try:
        return await parts.sealing()
    except Unavailable:
        return None


async def find(parts: Parts, text: str, told: Progress, seal: Seal | None) -> tuple[StoredDeadLetter, list[str]]:
    """The dead letter by its own place, by the place of the record it carries, or by replay id. Raises Failure for
    none.

    Of several attempts it returns the last one, and the places of the others.
    """
    topic = parts.topics["dead-letters"]
    if "/" in text:
        name, *rest = text.rsplit("/", 2)
        if len(rest) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in rest):
            raise Failure(f"{text[:128]!r} is no place: give topic/partition/offset, such as {topic}/0/12")
        partition, offset = map(int, rest)
        if full_topic_name(parts.topics, name) == topic:
            (record,) = await parts.records.fetch([(topic, partition, offset)])
            if record is None:
                raise Failure(f"{topic}/{partition} holds no record at offset {offset}")
            return parse_dead_letter(record, seal), []
        wanted = DeadLetterFilter(came_from=f"{full_topic_name(parts.topics, name)}/{partition}/{offset}")
    else:
        try:
            wanted = DeadLetterFilter(replay_id=parse_replay_id(text))
        except BadQuery as error:
            raise Failure(error.reason) from error
    best: StoredDeadLetter | None = None
    places: list[str] = []
    async for chunk in read_dead_letters(parts.access, topic, wanted, told, seal):
        places += [letter.place for letter in chunk]
        best = max([best, *chunk] if best is not None else chunk, key=lambda one: (one.attempts, one.failed_at))
    if best is None:
        raise Failure(f"there is no dead letter for {text}; `rampgate dead-letters list` shows what there is")
    return best, [place for place in places if place != best.place]
