"""Reads and writes what checks found of judges, as files of JSON Lines: the records of the topic `judge-standing`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from pathlib import Path

from agents.ports import Unavailable
from evalcore.canaries.suspensions import Suspensions
from evalcore.registry.judge import Judge
from rampgate.command import Context
from rampgate.console import Failure, run
from rampgate.files import append_file
from rampgate.input_files import read
from rampgate.settings import Settings
from schemas.checks.standing import StandingRecord
from schemas.topics import Topics
from streams.retry import WallClock

TOPIC = "topic"


@dataclass(frozen=True)
class Standings:
    """Where records of judges' standing are kept: a file, or without one the topic `judge-standing`. `added`: a check
    adds to them, and a file may be missing yet."""

    settings: Settings
    file: Path | None = None
    added: bool = True

    @cached_property
    def known(self) -> Suspensions:
        """All that is there. Raises BadFile, which names file and line, and Failure where the topic can't be read."""
        if self.file is None:
            return self._published()
        known = Suspensions()
        for _, record in read(self.file, StandingRecord) if self.file.exists() or not self.added else ():
            known.add(record)
        return known

    def _published(self) -> Suspensions:
        from rampgate.wiring import make_access
        from streams.gates.judge_standing import JudgeStandings

        topic = Topics(self.settings.topic_prefix)["judge-standing"]
        standings = partial(JudgeStandings, make_access(self.settings), topic)
        try:
            return run(lambda: standings(WallClock()).read_once()).known
        except Unavailable as error:
            raise Failure(f"{'the results are not published' if self.added else '--standing'}: {error}") from error

    def add(self, records: Sequence[StandingRecord]) -> None:
        """Add records. Raises Failure."""
        if self.file is not None:
            append_file(self.file, "".join(f"{one.model_dump_json()}\n" for one in records).encode())
        elif records:
            publish(self.settings, records)


def standings(context: Context, *, publish: bool) -> list[Standings]:
    """Where a check keeps what it found, by its options: the file of --standing, the topic of --publish."""
    files = [context.standing] if context.standing is not None else []
    return [Standings(context.settings, file) for file in [*files, *([None] if publish else [])]]


def suspended_judges(standing: str, settings: Settings, judges: Iterable[Judge], today: date) -> dict[str, str]:
    """Why judges are suspended, by id: as the topic says where `standing` is TOPIC, else the file of that name. Raises
    BadFile, and Failure where the topic can't be read: no gate passes by a judge of which that is not known."""
    kept = Standings(settings, None if standing == TOPIC else Path(standing), added=False)
    return {judge.id: why for judge in judges if (why := kept.known.why(judge.id, judge.version, today))}


def publish(settings: Settings, records: Sequence[StandingRecord]) -> None:
    """Write records to the topic of judges' standing. Raises Failure."""
    from rampgate.wiring import make_access
    from streams.gates.judge_standing import publish_standings

    topic = Topics(settings.topic_prefix)["judge-standing"]
    try:
        run(partial(publish_standings, make_access(settings), topic, records))
    except Unavailable as error:
        raise Failure(f"the results are not published: {error}") from error
    sys.stderr.write(f"published on {topic}\n")
