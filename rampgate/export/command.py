"""Runs `rampgate export`: one vertical's turns that a filter selects, from its own project, with its own key."""

from __future__ import annotations

import hashlib
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.ports import Unauthorized, Unavailable
from evalcore.selection.where import BadWhere, Comparison, Where, needed_scores, parse_where, printed
from rampgate.console import BadQuery, Failure, plain, print_json, run, user
from rampgate.export.audited import audited, audited_pairs
from rampgate.export.chains import Chains
from rampgate.export.lines import encoded, line
from rampgate.export.pairs import LEFT_OUT, LIMIT
from rampgate.logs import configure_logs
from rampgate.opik_reading import opened
from rampgate.progress import Progress, progress, stderr
from rampgate.registry.file_writer import replacing
from rampgate.registry.verticals import load_verticals
from rampgate.registry.view import UnknownName
from rampgate.settings import Settings
from rampgate.wiring import make_access
from schemas.settings import parse_moment
from schemas.topics import Topics
from schemas.verticals import Vertical
from streams.kafka.client import Producer
from streams.opik.traces import OpikTraces
from streams.queries.audit import Audit
from streams.queries.turn_pages import turn_pages
from streams.retry import WallClock

Lines = AsyncGenerator[list[dict[str, Any]], None]
RETRY_SECONDS = 60.0
"""How long a page is asked for again where Opik is silent."""


@dataclass(frozen=True)
class Options:
    where: str
    vertical: str
    sub_agent: str | None
    since: str
    limit: int | None
    output: Path | None
    as_json: bool
    pairs: bool = False


@dataclass
class Done:
    """What was exported so far; `left_out` has what pairs were not, by reason."""

    lines: int = 0
    pages: int = 0
    without_text: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


class Unread(Exception):
    """Nobody reads stdout any more."""


def export_turns(settings: Settings, options: Options) -> int:
    """Export, and return the exit code. Raises Failure for what the caller has to correct and for a part out of
    reach."""
    configure_logs("error", "console")
    owner, where = _owner(settings, options.vertical), _where(options)
    if options.as_json and options.output is None:
        raise Failure("--json: stdout has the summary then; say with --output FILE where the lines go")
    clock = WallClock()
    until = clock.now_ms()
    try:
        since = parse_moment(options.since)
    except ValueError as error:
        raise Failure(BadQuery(str(error), "since").as_option()) from error
    if since >= until:
        raise Failure(f"--since: {options.since[:64]} is not in the past")
    query: dict[str, Any] = {
        "where": printed(where), "since": _iso(since), "until": _iso(until), "limit": options.limit,
    }  # fmt: skip
    if options.pairs:
        query["pairs"] = True
    done, digest = Done(), hashlib.sha256()
    named: dict[str, Any] = {
        "caller": f"cli:{user()}", "vertical": owner.name, "query": query, "limit": options.limit,
    }  # fmt: skip

    async def turns(traces: OpikTraces, audit: Audit) -> Lines:
        pages = turn_pages(
            traces, owner.project, vertical=owner.name, since_ms=since, until_ms=until,
            whole=True, having=needed_scores(where),
        )  # fmt: skip
        async with aclosing(audited(pages, where, audit, **named)) as chosen:
            async for page in chosen:
                lines = [line(view) for view in page]
                done.without_text += sum(one["user_query"] is None or one["agent_response"] is None for one in lines)
                yield lines

    async def pairs(traces: OpikTraces, audit: Audit) -> Lines:
        window = round(owner.reroll_window_seconds * 1000)
        chains = Chains(owner.project, since_ms=since, until_ms=until, window_ms=window)
        # Whatever the filter needs of rejected answers, the one after them may lack.
        pages = turn_pages(
            traces, owner.project, vertical=owner.name, since_ms=chains.reach_ms, until_ms=until, whole=True
        )
        async with aclosing(audited_pairs(pages, chains, where, audit, left_out=done.left_out, **named)) as chosen:
            async for lines in chosen:
                yield lines

    async def export(write: Callable[[bytes], object], shown: Progress) -> None:
        producer = Producer(make_access(settings))
        audit = Audit(producer, Topics(settings.topic_prefix, settings.audit_topic).audit, clock)
        try:
            async with opened(settings, owner, retry_seconds=RETRY_SECONDS) as traces:
                chosen = pairs(traces, audit) if options.pairs else turns(traces, audit)
                async with aclosing(chosen):
                    async for lines in chosen:
                        content = encoded(lines)
                        digest.update(content)
                        write(content)
                        done.lines += len(lines)
                        done.pages += 1
                        shown.at(done.lines)
        finally:
            await producer.close()

    with ExitStack() as stack:
        unit = "pairs" if options.pairs else "turns"
        shown = stack.enter_context(progress(f"export of {owner.name}", options.limit, unit=unit))
        try:
            write = stack.enter_context(_target(options.output))
            run(lambda: export(write, shown))
        except Unread:
            return 0
        except Unauthorized as error:
            own = settings.configs / "verticals" / f"{owner.name}.yaml"
            told = f"vertical {owner.name} can't read its project {owner.project}: {error}, or api_key_file in {own}"
            raise Failure(told) from error
        except Unavailable as error:
            raise Failure(str(error)) from error
        except OSError as error:
            where_to = f"--output: {options.output}" if options.output else "stdout"
            raise Failure(f"{where_to}: can't be written: {error}") from error
    summary = {
        "vertical": owner.name, "project": owner.project, **query,
        "lines": done.lines, "pages": done.pages, "without_text": done.without_text,
        "limit_reached": options.limit is not None and (done.lines == options.limit or done.left_out[LIMIT] > 0),
        "output": str(options.output) if options.output else None, "sha256": digest.hexdigest(),
    }  # fmt: skip
    if options.pairs:
        summary["left_out"] = {reason: done.left_out[reason] for reason in LEFT_OUT}
    if options.as_json:
        print_json(summary)
    else:
        _tell(summary)
    return 0


def _owner(settings: Settings, name: str) -> Vertical:
    verticals = load_verticals(settings.configs)
    if name not in verticals:
        raise Failure(str(UnknownName("vertical", name, verticals)))
    return verticals[name]


def _where(options: Options) -> Where:
    try:
        where = parse_where(options.where)
    except BadWhere as error:
        raise Failure(BadQuery(str(error), "where").as_option()) from error
    return where if options.sub_agent is None else (*where, Comparison("", "sub_agent", "=", options.sub_agent))


@contextmanager
def _target(output: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Where the lines go: a file that appears whole when all are there, or stdout, page by page."""
    if output is not None:
        with replacing(output) as file:
            yield file.write
        return

    def write(content: bytes) -> None:
        try:
            sys.stdout.write(content.decode())
            sys.stdout.flush()
        except BrokenPipeError as error:
            # What is left in its buffer goes nowhere, in silence, when the interpreter ends.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
            raise Unread from error

    yield write


def _tell(summary: dict[str, Any]) -> None:
    console = stderr()
    what = "pairs" if "left_out" in summary else "turns"
    console.print(
        f"{summary['lines']:,} {what} of {plain(summary['vertical'])} in {plain(summary['project'])} since "
        f"{summary['since']}, {summary['pages']:,} audit records"
    )
    if summary["without_text"]:
        console.print(
            f"{summary['without_text']:,} lack a text: their trace has none, or is too long to be read (`rampgate turn "
            "RESPONSE_ID --purpose eval`)"
        )
    for reason, many in summary.get("left_out", {}).items():
        if many:
            console.print(f"left out: {many:,} {LEFT_OUT[reason]}")
    if summary["limit_reached"]:
        console.print("the limit is reached; there may be more")


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()
