"""Runs `rampgate export`: one vertical's turns that a filter selects, from its own project, with its own key."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from agents.ports import Unauthorized
from evalcore.selection.where import BadWhere, Comparison, Where, needed_scores, parse_where, printed
from rampgate.console import BadQuery, Failure, user
from rampgate.export.audited import audited, record
from rampgate.export.lines import line
from rampgate.export.verification import ExportAudit, seal_of
from rampgate.export.writing import Unread, Written, to_file, to_stdout
from rampgate.progress import Progress
from rampgate.registry.opik_reading import opened
from rampgate.registry.verticals import load_verticals, workspace_of
from rampgate.registry.view import require_vertical
from rampgate.settings import Settings
from rampgate.wiring import make_access
from schemas.settings import parse_moment
from schemas.topics import Topics
from schemas.verticals import Vertical
from streams.kafka.client import Producer
from streams.opik.traces import OpikTraces
from streams.queries.turn_pages import turn_pages
from streams.retry import WallClock

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


class _Export:
    """One export: of which turns, for whom."""

    def __init__(self, settings: Settings, options: Options) -> None:
        """Raises Failure for what the caller has to correct."""
        self.settings, self.options = settings, options
        self.owner, self.where = _owner(settings, options.vertical), _where(options)
        if options.output is not None and options.output.is_dir():
            raise Failure(f"--output {options.output}: is a folder; name a file in it")
        self.caller, self.clock = f"cli:{user()}", WallClock()
        if self.since(until := self.clock.now_ms()) >= until:
            raise Failure(f"--since: {options.since[:64]} is not in the past")

    def since(self, until_ms: int) -> int:
        try:
            return parse_moment(self.options.since, until_ms)
        except ValueError as error:
            raise Failure(BadQuery(str(error), "since").as_option()) from error

    def query(self, written: Written) -> dict[str, Any]:
        """What is asked, as its records and the summary have it."""
        return {
            "where": printed(self.where), "since": _iso(self.since(written.until_ms)), "until": _iso(written.until_ms),
            "limit": self.options.limit, "export": written.name,
        }  # fmt: skip

    def target(self) -> AbstractAsyncContextManager[Written]:
        """Where the lines go, which has those of the same export that was killed."""
        options = self.options
        if options.output is None:
            return nullcontext(to_stdout(uuid4().hex[:16], self.clock.now_ms()))
        opik = (self.settings.opik, workspace_of(self.owner, self.settings), self.owner.project)
        asked = (printed(self.where), options.since, options.limit)
        beside = Path(os.path.realpath(options.output))
        return to_file(beside, "export", self.caller, self.owner.name, *opik, *asked, self.owner.trace.model_dump())

    async def run(self, shown: Progress) -> Written:
        """Write all lines. Raises Unread, Unauthorized, Unavailable and OSError."""
        settings, limit = self.settings, self.options.limit
        async with self.target() as written:
            producer = Producer(make_access(settings))
            topic = Topics(settings.topic_prefix, settings.audit_topic).audit
            audit = ExportAudit(producer, topic, self.clock, seal_of(settings), [written.record])
            try:
                if limit is None or written.lines < limit:
                    async with opened(settings, self.owner, retry_seconds=RETRY_SECONDS, tells=True) as traces:
                        await self._turns(traces, audit, written, shown)
                ended = {"pages": written.pages, "lines": written.lines, "sha256": written.sha256}
                named = {"caller": self.caller, "vertical": self.owner.name}
                await record(audit, [], **named, query={**self.query(written), **ended})
            finally:
                await producer.close()
        return written

    async def _turns(self, traces: OpikTraces, audit: ExportAudit, written: Written, shown: Progress) -> None:
        pages = turn_pages(
            traces, self.owner.project, vertical=self.owner.name, since_ms=self.since(written.until_ms),
            until_ms=written.until_ms, whole=True, having=needed_scores(self.where), after=written.after,
        )  # fmt: skip
        async with aclosing(audited(pages, self.where, audit, **self._named(written))) as chosen:
            async for page in chosen:
                lines = [line(view, self.owner.trace) for view in page]
                without = sum(one["user_query"] is None or one["agent_response"] is None for one in lines)
                await written.add(lines, after=str(page[-1].trace["id"]), without_text=without, record=audit.last[0])
                shown.at(written.lines)

    def _named(self, written: Written) -> dict[str, Any]:
        limit = self.options.limit
        return {
            "caller": self.caller, "vertical": self.owner.name, "query": self.query(written), "seen": written.seen,
            "limit": limit if limit is None else limit - written.lines, "number": written.pages,
        }  # fmt: skip


async def export_turns(settings: Settings, options: Options) -> dict[str, Any] | None:
    """Export, and return the summary; None where the reader of stdout has gone. Raises Failure for what the caller has
    to correct, and Unavailable."""
    export = _Export(settings, options)
    owner = export.owner
    with Progress(f"export of {owner.name}", options.limit, unit="turns") as shown:
        try:
            written = await export.run(shown)
        except Unread:
            return None
        except Unauthorized as error:
            own = settings.configs / "verticals" / f"{owner.name}.yaml"
            told = f"vertical {owner.name} can't read its project {owner.project}: {error}, or api_key_file in {own}"
            raise Failure(told) from error
        except OSError as error:
            why = f"can't be written: {error.strerror or error}"
            if options.output is None:
                raise Failure(f"stdout: {why}") from error
            raise Failure(f"--output: {options.output}: {why}; once it can, the same command goes on") from error
    return {
        "vertical": owner.name, "project": owner.project, **export.query(written),
        "lines": written.lines, "pages": written.pages, "without_text": written.without_text,
        "limit_reached": options.limit is not None and written.lines == options.limit,
        "output": str(options.output) if options.output else None, "sha256": written.sha256,
    }  # fmt: skip


def _owner(settings: Settings, name: str) -> Vertical:
    verticals = load_verticals(settings.configs)
    require_vertical(name, verticals)
    return verticals[name]


def _where(options: Options) -> Where:
    try:
        where = parse_where(options.where)
    except BadWhere as error:
        raise Failure(BadQuery(str(error), "where").as_option()) from error
    return where if options.sub_agent is None else (*where, Comparison("", "sub_agent", "=", options.sub_agent))


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()
