"""Runs `rampgate dead-letters list`, `show` and `replay` (contracts §5).

What comes from a record is escaped, so that its content can't control the terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import BadQuery, Failure
from rampgate.options import DryRunOption, YesOption
from rampgate.report.model import Cell, Passage, Reason, Report, Section

if TYPE_CHECKING:
    from rampgate.wiring import Parts
    from schemas.dead_letter_answers import ReplayAnswer, StoredDeadLetter
    from schemas.seals import Seal
    from streams.dead_letters.reader import DeadLetterFilter, Progress
    from streams.dead_letters.replay import ReplayResult

HEAD = 4_096
"""Characters of a value that `show` prints; --raw writes all of it."""
MOST_REFUSED = 20
GONE = {"--stage": "--cause and --topic select letters"}
_TONES = {"open": "warn", "replayed": "warn", "resolved": "pass", "not replayable": "fail"}
Told = Mapping[str, Any]
CauseOption = Annotated[list[str] | None, Option(help="Only this cause; may be given again")]
SinceOption = Annotated[str | None, Option(help="Failed since: 2h, 7d, or an ISO 8601 time")]
UntilOption = Annotated[str | None, Option(help="Failed before: 10m, or an ISO 8601 time")]
TopicOption = Annotated[list[str] | None, Option(help="The topic it came from, with or without prefix")]
KeyOption = Annotated[str | None, Option(help="The response id")]


def list_report(told: Told) -> Report:
    letters = told["letters"]
    rows = [
        [
            one["failed_at"][:19].replace("T", " "), one["cause"], f"{one['topic']}/{one['partition']}/{one['offset']}",
            one["key"] or "–", f"{one['attempts']} (×{one['copies']})" if one["copies"] > 1 else str(one["attempts"]),
            Cell(one["state"], _TONES[one["state"]]), one["detail"] + (f" ({one['why']})" if one["why"] else ""),
        ]
        for one in letters
    ]  # fmt: skip
    first = {one["cause"]: one for one in reversed(letters)}
    remedies = [
        [cause, many, *((first[cause]["means"], first[cause]["do"]) if cause in first else ("", ""))]
        for cause, many in told["by_cause"].items()
    ]
    more = [f"The last {len(letters)} of {told['total']}; --limit 0 shows all."] * (len(letters) < told["total"])
    if not told["states_known"]:
        more.append("Redis is out of reach: replayed and resolved letters may show as open.")
    heads = ("Failed at", "Cause", "From", "Key", "Tries", "State", "Detail")
    sections = [
        Section("", heads, rows, more),
        Section("By cause", ("Cause", "Letters", "What happened", "What to do"), remedies),
    ]
    result = f"{told['total']} match" if told["total"] else "none match"
    return Report("Dead letters", result, "warn" if told["total"] else "pass", sections)


@command(
    list_report,
    flags="kafka redis",
    gone={**GONE, "--replay-id": "`rampgate dead-letters show ID` shows all its attempts"},
)
async def list_letters(
    context: Context,
    cause: CauseOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    topic: TopicOption = None,
    key: KeyOption = None,
    limit: Annotated[int, Option(min=0, help="Show only the last ones; 0 for all")] = 1_000,
) -> Document:
    """List what is in the dead-letter topic, why, and what to do about it.

    Example: rampgate dead-letters list --cause opik_unavailable --since 2h
    """
    from rampgate.progress import Progress
    from rampgate.queries import DeadLetterQuery, dead_letter_filter, dead_letter_states
    from streams.dead_letters.listing import Listing
    from streams.dead_letters.reader import read_dead_letters

    async with context.parts() as parts:
        wanted = dead_letter_filter(parts.topics, DeadLetterQuery(cause, since, until, topic, key))
        known = await _reachable(parts)
        seal = await seal_of(parts, known)
        listing = Listing(dead_letter_states(parts, with_redis=known), limit)
        with Progress("reading", unit="records") as shown:
            await listing.read(read_dead_letters(parts.access, parts.topics["dead-letters"], wanted, shown.at, seal))
        return Document(listing.answer(states_known=known))


def show_report(told: Told) -> Report:
    facts = {
        "cause": told["cause"],
        "what happened": told["means"],
        "what to do": told["do"],
        "detail": told["detail"],
        "state": told["state"] + (f" ({told['why']})" if told["why"] else ""),
        "attempts": str(told["attempts"]),
        "stage": told["stage"],
        "failed at": told["failed_at"],
        "came from": f"{told['topic']}/{told['partition']}/{told['offset']}",
        "written at": told["timestamp"],
        "stored at": told["place"],
        "also at": ", ".join(told["others"]),
        "key": told["key"] if told["key"] is not None else "none",
    }
    rows: list[list[Any]] = [[name, fact] for name, fact in facts.items() if fact]
    rows += [["header", f"{name}: {_text(content)}"] for name, content in told["headers"]]
    rows.append(["value", f"{told['size']} bytes" if told["size"] is not None else "null"])
    lines = _text(told["value"])
    more = [f"{len(lines) - HEAD} characters more: --raw writes them all"] if len(lines) > HEAD else []
    sections = [Section("", rows=rows), Section("Value", ("Value",), [[Passage(lines[:HEAD])]] if lines else [], more)]
    return Report(f"Dead letter {told['replay_id']}", told["state"], _TONES[told["state"]], sections)


def _text(value: Told | None) -> str:
    """A value or header as indented JSON, as text, or as hex."""
    import base64

    import orjson

    if value is None:
        return ""
    if value["encoding"] == "json":
        return orjson.dumps(value["data"], option=orjson.OPT_INDENT_2).decode()
    return str(value["data"]) if value["encoding"] == "text" else base64.b64decode(value["data"]).hex(" ")


@command(show_report, flags="kafka redis")
async def show(
    context: Context,
    letter: Annotated[str, Argument(help="A replay id, or a place: topic/partition/offset")],
    raw: Annotated[bool, Option("--raw", help="Write the value's own bytes to stdout, and nothing else")] = False,
) -> Document | None:
    """Show one dead letter whole: headers, key, value, and the meaning of its cause. Of several attempts, the last.

    Example: rampgate dead-letters show rampgate.thumbs/0/1742
    """
    from rampgate.progress import Progress
    from rampgate.queries import dead_letter_states
    from streams.dead_letters.listing import answer_of

    async with context.parts() as parts:
        known = await _reachable(parts)
        with Progress("searching", unit="records") as shown:
            found, others = await _find(parts, letter, shown.at, await seal_of(parts, known))
        if raw:
            sys.stdout.buffer.write(found.record.value or b"")
            sys.stdout.buffer.flush()
            return None
        (status,) = await dead_letter_states(parts, with_redis=known).of([found])
    headers = [[name, value_json(content)] for name, content in found.original_headers]
    value = value_json(found.record.value)
    return Document({**answer_of(found, status), "headers": headers, "value": value, "others": others})


def value_json(value: bytes | None) -> dict[str, Any] | None:
    """The whole value: `{encoding, data}`, with encoding json, text or base64."""
    import base64

    import orjson

    if value is None:
        return None
    try:
        return {"encoding": "json", "data": orjson.loads(value)}
    except orjson.JSONDecodeError:
        pass
    try:
        return {"encoding": "text", "data": value.decode("utf-8")}
    except UnicodeDecodeError:
        return {"encoding": "base64", "data": base64.b64encode(value).decode()}


class ReplayTerms(NamedTuple):
    """Limits of a replay. `rate` is in records a second; 0 means no limit, for `limit` too."""

    rate: float
    max_attempts: int
    limit: int
    dry_run: bool


def replay_report(told: Told) -> Report:
    many = f"{told['replayed']} of {told['matched']} dead letters"
    verb = "would replay" if told["dry_run"] else "replayed"
    rows = [[cause, number] for cause, number in told["by_cause"].items()]
    notes = []
    if told["already_replayed"]:
        notes.append(f"{told['already_replayed']} were replayed before")
    if told["resolved"]:
        notes.append(f"{told['resolved']} are resolved: their turns have the signal")
    refused = told["refused"][:MOST_REFUSED]
    if left := told["refused_total"] - len(refused):
        notes.append(f"{left} more can't be replayed")
    why = [Reason("error", f"can't be replayed: {one['why']}", about=one["place"]) for one in refused]
    result = f"{verb} {many}" if told["matched"] else "none match: nothing to do"
    section = Section("By cause", ("Cause", "Letters"), rows, notes)
    return Report("Dead letters", result, "fail" if told["refused_total"] else "pass", [section], why)


@command(replay_report, flags="kafka redis", gone=GONE)
async def replay(
    context: Context,
    cause: CauseOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    topic: TopicOption = None,
    key: KeyOption = None,
    replay_id: Annotated[str | None, Option(help="One record, over all its attempts")] = None,
    limit: Annotated[int, Option(min=0, help="Replay at most this many; 0 for all")] = 0,
    rate: Annotated[float, Option(min=0, help="Records a second; 0 for no limit")] = 200.0,
    max_attempts: Annotated[int | None, Option(min=1, help="Leave what failed this often; default: 5")] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Document:
    """Send dead letters back, unchanged, to the topics they came from. Safe to repeat, and to run twice at once.

    It asks on a terminal, unless with --json. Exit code 1 if some of what matched can't be replayed.

    Example: rampgate dead-letters replay --cause opik_unavailable --since 2h --dry-run
    """
    from rampgate.queries import DeadLetterQuery, dead_letter_filter
    from schemas.dead_letter_answers import MAX_ATTEMPTS

    asks = not (dry_run or yes or context.as_json) and sys.stdin.isatty() and sys.stderr.isatty()
    terms = ReplayTerms(rate, max_attempts or MAX_ATTEMPTS, limit, dry_run)
    async with context.parts() as parts:
        wanted = dead_letter_filter(parts.topics, DeadLetterQuery(cause, since, until, topic, key, replay_id=replay_id))
        result = await run_replay(parts, wanted, terms._replace(dry_run=dry_run or asks))
        answer = replay_answer(result, dry_run or asks)
        if asks and result.replayed and context.confirm(replay_report(answer), "Replay them?", yes=False):
            answer = replay_answer(await run_replay(parts, wanted, terms), dry_run=False)
    return Document(answer, 1 if answer["refused_total"] else 0)


async def run_replay(parts: Parts, wanted: DeadLetterFilter, terms: ReplayTerms) -> ReplayResult:
    """Replay in one pass over the dead letters. Raises Failure, with the number done, when a part goes away."""
    from agents.ports import Unavailable
    from rampgate.progress import Progress
    from rampgate.queries import dead_letter_ledger, dead_letter_states
    from schemas.topics import consumed
    from streams.dead_letters.reader import read_dead_letters
    from streams.dead_letters.replay import Replay
    from streams.kafka.reading import partitions_of

    partitions = await partitions_of(parts.access, [parts.topics[name] for name in consumed()])
    replaying = Replay(
        parts.producer,
        dead_letter_ledger(parts),
        dead_letter_states(parts, with_redis=True),
        partitions,
        **terms._asdict(),
    )
    topic, seal = parts.topics["dead-letters"], await agreed_seal(parts)
    with Progress("looking" if terms.dry_run else "replaying", unit="records") as shown:
        try:
            return await replaying.run(read_dead_letters(parts.access, topic, wanted, shown.at, seal))
        except Unavailable as error:
            done = f"{replaying.result.replayed} were replayed before that; run it again for the rest"
            raise Failure(f"{error}. {done}") from error


def replay_answer(result: ReplayResult, dry_run: bool) -> ReplayAnswer:
    from schemas.dead_letter_answers import ReplayAnswer
    from streams.dead_letters.listing import answer_of

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


async def _reachable(parts: Parts) -> bool:
    """Whether Redis answers; dead letters can be read without it."""
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
    from agents.ports import Unavailable

    if not redis and parts.settings.seal_key is None:
        return None
    try:
        return await parts.sealing()
    except Unavailable:
        return None


async def _find(parts: Parts, text: str, told: Progress, seal: Seal | None) -> tuple[StoredDeadLetter, list[str]]:
    """The dead letter by its own place, by the place of the record it carries, or by replay id. Raises Failure for
    none.

    Of several attempts it returns the last one, and the places of the others.
    """
    from rampgate.queries import full_topic_name, parse_replay_id
    from schemas.dead_letter_answers import parse_dead_letter
    from streams.dead_letters.reader import DeadLetterFilter, read_dead_letters

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
