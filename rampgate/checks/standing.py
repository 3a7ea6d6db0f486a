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
    """Where records of judges' standing are kept: a file, or without one the topic `judge-standing`."""

    settings: Settings
    file: Path | None = None

    @cached_property
    def known(self) -> Suspensions:
        """All that is there. Raises BadFile, and Failure where the topic can't be read."""
        if self.file is None:
            return known_by_topic(self.settings)
        return known_by_file(self.file) if self.file.exists() else Suspensions()

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
    if standing != TOPIC:
        return suspended_by_file(Path(standing), judges, today)
    return _suspended(_known(settings, "--standing"), judges, today)


def suspended_by_file(path: Path, judges: Iterable[Judge], today: date) -> dict[str, str]:
    """Why judges are suspended, by id, as the records of a file say. Raises BadFile, which names file and line."""
    return _suspended(known_by_file(path), judges, today)


def _suspended(known: Suspensions, judges: Iterable[Judge], today: date) -> dict[str, str]:
    return {judge.id: why for judge in judges if (why := known.why(judge.id, judge.version, today))}


def known_by_file(path: Path) -> Suspensions:
    """All that the records of a file say. Raises BadFile, which names file and line."""
    known = Suspensions()
    for _, record in read(path, StandingRecord):
        known.add(record)
    return known


def known_by_topic(settings: Settings) -> Suspensions:
    """All that the topic of judges' standing has. Raises Failure where it can't be read."""
    return _known(settings, "the results are not published")


def _known(settings: Settings, what: str) -> Suspensions:
    from rampgate.wiring import make_access
    from streams.gates.judge_standing import JudgeStandings

    standings = partial(JudgeStandings, make_access(settings), Topics(settings.topic_prefix)["judge-standing"])
    try:
        return run(lambda: standings(WallClock()).read_once()).known
    except Unavailable as error:
        raise Failure(f"{what}: {error}") from error


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
