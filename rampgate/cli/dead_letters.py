"""`rampgate dead-letters list / show / replay` (contracts §5)."""

from __future__ import annotations

from typing import Annotated

import typer

from rampgate.console import run
from rampgate.options import DryRunOption, JsonOption, KafkaOption, RedisOption, YesOption

dead_letters = typer.Typer(
    help="Records that could not be processed, whole and with the reason; and how to replay them.", no_args_is_help=True
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
    limit: Annotated[int, typer.Option(min=0, help="Show only the last ones; 0 for all")] = 1_000,
    as_json: JsonOption = False,
    kafka: KafkaOption = None,
    redis: RedisOption = None,
) -> None:
    """List what is in the dead-letter topic, why, and what to do about it.

    Example: rampgate dead-letters list --cause opik_unavailable --since 2h
    """
    from rampgate.cli.jobs.state.dead_letters import list_dead_letters
    from rampgate.queries import DeadLetterQuery

    query = DeadLetterQuery(cause, since, until, topic, key, stage, replay_id)
    run(lambda: list_dead_letters(query, limit, as_json, kafka, redis))


@dead_letters.command("show")
def show_command(
    letter: Annotated[str, typer.Argument(help="A replay id, or a place: topic/partition/offset")],
    raw: Annotated[bool, typer.Option("--raw", help="Write the value's own bytes to stdout, and nothing else")] = False,
    as_json: JsonOption = False,
    kafka: KafkaOption = None,
    redis: RedisOption = None,
) -> None:
    """Show one dead letter whole: headers, key, value, and the meaning of its cause. Of several attempts, the last.

    Example: rampgate dead-letters show rampgate.thumbs/0/1742
    """
    from rampgate.cli.jobs.state.dead_letters import show_dead_letter

    run(lambda: show_dead_letter(letter, raw, as_json, kafka, redis))


@dead_letters.command("replay")
def replay_command(
    cause: CauseOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    topic: TopicOption = None,
    key: KeyOption = None,
    stage: StageOption = None,
    replay_id: ReplayIdOption = None,
    limit: Annotated[int, typer.Option(min=0, help="Replay at most this many; 0 for all")] = 0,
    rate: Annotated[float, typer.Option(min=0, help="Records a second; 0 for no limit")] = 200.0,
    max_attempts: Annotated[int | None, typer.Option(min=1, help="Leave what failed this often; default: 5")] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
    kafka: KafkaOption = None,
    redis: RedisOption = None,
) -> None:
    """Send dead letters back, unchanged, to the topics they came from. Safe to repeat, and to run twice at once.

    Exit code 1 if some of what matched can't be replayed.

    Example: rampgate dead-letters replay --cause opik_unavailable --since 2h --dry-run
    """
    from rampgate.cli.jobs.state.dead_letters import ReplayTerms, replay_dead_letters
    from rampgate.queries import DeadLetterQuery
    from schemas.dead_letter_answers import MAX_ATTEMPTS

    query = DeadLetterQuery(cause, since, until, topic, key, stage, replay_id)
    terms = ReplayTerms(rate, max_attempts or MAX_ATTEMPTS, limit, dry_run, yes)
    raise typer.Exit(run(lambda: replay_dead_letters(query, terms, as_json, kafka, redis)))
