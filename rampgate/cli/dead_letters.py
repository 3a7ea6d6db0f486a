"""`rampgate dead-letters list / show / replay` (contracts §5)."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import typer

from agents.ports import Unavailable
from rampgate.cli import letter_view as view
from rampgate.cli.common import Failure, print_json, run
from rampgate.cli.letter_search import find, letter_filter
from rampgate.logs import configure_logs
from rampgate.settings import load_settings
from rampgate.wiring import AGENTS, Parts, make_parts
from schemas.letters import ReplayAnswer
from streams.dead_letters import partitions_of, read_letters
from streams.letter_listing import Listing, answer_of
from streams.letter_states import LetterStates
from streams.replay import MAX_ATTEMPTS, Outcome, Replay
from streams.replay_ledger import ReplayLedger

DAY_MS = 86_400_000
PROGRESS_EVERY = 1

dead_letters = typer.Typer(
    help="What could not be done, whole and with its reason; and how to have it done after all.", no_args_is_help=True
)

CauseOption = Annotated[list[str] | None, typer.Option("--cause", help="Only this cause; may be given again")]
SinceOption = Annotated[str | None, typer.Option("--since", help="Failed since: 2h, 7d, or an ISO 8601 time")]
UntilOption = Annotated[str | None, typer.Option("--until", help="Failed before: 10m, or an ISO 8601 time")]
TopicOption = Annotated[
    list[str] | None, typer.Option("--topic", help="The topic it came from, with or without prefix")
]
KeyOption = Annotated[str | None, typer.Option("--key", help="The response id")]
StageOption = Annotated[str | None, typer.Option("--stage", help="Where it failed, such as thumbs.decode")]
ReplayIdOption = Annotated[str | None, typer.Option("--replay-id", help="One record, over all its attempts")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout")]
KafkaOption = Annotated[str | None, typer.Option("--kafka", help="Brokers, comma-separated")]
RedisOption = Annotated[str | None, typer.Option("--redis", help="Redis URL")]


def register(app: typer.Typer) -> None:
    app.add_typer(dead_letters, name="dead-letters")


@dead_letters.command("list")
def list_command(
    cause: CauseOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    topic: TopicOption = None,
    key: KeyOption = None,
    stage: StageOption = None,
    replay_id: ReplayIdOption = None,
    limit: Annotated[int, typer.Option(min=0, help="Show the last so many; 0 for all")] = 1_000,
    as_json: JsonOption = False,
    kafka: KafkaOption = None,
    redis: RedisOption = None,
) -> None:
    """What lies in the dead-letter topic, why, and what to do about it.

    Example: rampgate dead-letters list --cause opik_unavailable --since 2h
    """

    async def job() -> None:
        async with opened(kafka, redis) as parts:
            wanted = letter_filter(parts.topics, cause, since, until, topic, key, stage, replay_id)
            known = await reachable(parts)
            listing = Listing(make_states(parts, known), limit)
            with view.progress_bar("reading", shown=not as_json) as progress:
                await listing.read(read_letters(parts.access, parts.topics["dead-letters"], wanted, progress))
            answer = listing.answer(states_known=known)
        if as_json:
            print_json(answer)
        else:
            view.show_list(answer)

    run(job)


@dead_letters.command("show")
def show_command(
    letter: Annotated[str, typer.Argument(help="A replay id, or a place: topic/partition/offset")],
    raw: Annotated[bool, typer.Option("--raw", help="Write the value's own bytes to stdout, and nothing else")] = False,
    as_json: JsonOption = False,
    kafka: KafkaOption = None,
    redis: RedisOption = None,
) -> None:
    """One dead letter whole: headers, key, value, and what its cause means. Of several attempts, the last.

    Example: rampgate dead-letters show rampgate.thumbs/0/1742
    """

    async def job() -> None:
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
            value = view.value_json(found.record.value)
            print_json({**answer, "headers": headers, "value": value, "others": others})
        else:
            view.show_letter(found, answer, others)

    run(job)


@dead_letters.command("replay")
def replay_command(
    cause: CauseOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    topic: TopicOption = None,
    key: KeyOption = None,
    stage: StageOption = None,
    replay_id: ReplayIdOption = None,
    limit: Annotated[int, typer.Option(min=0, help="Replay at most so many; 0 for all")] = 0,
    rate: Annotated[float, typer.Option(min=0, help="Records a second; 0 for no limit")] = 200.0,
    max_attempts: Annotated[int, typer.Option(min=1, help="Leave what has failed so often")] = MAX_ATTEMPTS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask on a terminal")] = False,
    as_json: JsonOption = False,
    kafka: KafkaOption = None,
    redis: RedisOption = None,
) -> None:
    """Send dead letters back to the topics they came from, as they came. Safe to repeat, and to run twice at once.

    Exit code 1 if some of what matched can't be replayed.

    Example: rampgate dead-letters replay --cause opik_unavailable --since 2h --dry-run
    """
    asks = not (dry_run or yes or as_json) and sys.stdin.isatty() and sys.stderr.isatty()

    async def job() -> Outcome:
        async with opened(kafka, redis) as parts:
            wanted = letter_filter(parts.topics, cause, since, until, topic, key, stage, replay_id)
            targets = [parts.topics[name] for name in AGENTS]
            partitions = await partitions_of(parts.access, targets)

            async def once(*, dry: bool, title: str) -> Outcome:
                replay = Replay(
                    parts.producer,
                    make_ledger(parts),
                    make_states(parts, True),
                    partitions,
                    rate=rate,
                    max_attempts=max_attempts,
                    dry_run=dry,
                    limit=limit,
                )
                with view.progress_bar(title, shown=not as_json) as progress:
                    letters = read_letters(parts.access, parts.topics["dead-letters"], wanted, progress)
                    try:
                        return await replay.run(letters)
                    except Unavailable as error:
                        done = f"{replay.outcome.replayed} were replayed before that; run it again for the rest"
                        raise Failure(f"{error}. {done}") from error

            if asks:
                planned = await once(dry=True, title="looking")
                view.show_outcome(planned, dry_run=True, stderr=True)
                if not planned.replayed or not typer.confirm("Replay them?", err=True):
                    return planned
            return await once(dry=dry_run, title="looking" if dry_run else "replaying")

    outcome = run(job)
    if as_json:
        print_json(replay_answer(outcome, dry_run))
    else:
        view.show_outcome(outcome, dry_run=dry_run)
    raise typer.Exit(1 if outcome.refused else 0)


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
