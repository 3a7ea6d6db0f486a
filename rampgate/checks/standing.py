"""Reads and writes what checks found of judges, as files of JSON Lines: the records of the topic `judge-standing`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

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
T = TypeVar("T")


@dataclass(frozen=True)
class Standings:
    """Where records of judges' standing are kept: a file, or without one the topic `judge-standing`."""

    settings: Settings
    file: Path | None = None

    @cached_property
    def known(self) -> Suspensions:
        """All that is there. Raises BadFile, and Failure where the topic can't be read."""
        if self.file is not None:
            return known_by_file(self.file) if self.file.exists() else Suspensions()
        from streams.gates.judge_standing import known_now

        return self._on_topic(known_now, WallClock())

    def add(self, records: Sequence[StandingRecord]) -> None:
        """Add records. Raises Failure."""
        if self.file is not None:
            append_file(self.file, "".join(f"{one.model_dump_json()}\n" for one in records).encode())
            return
        if records:
            from streams.gates.judge_standing import publish_standings

            self._on_topic(publish_standings, records)
            sys.stderr.write(f"published on {self._topic}\n")

    @property
    def _topic(self) -> str:
        return Topics(self.settings.topic_prefix)["judge-standing"]

    def _on_topic(self, job: Callable[..., Coroutine[Any, Any, T]], *about: object) -> T:
        from rampgate.wiring import make_access

        try:
            return run(partial(job, make_access(self.settings), self._topic, *about))
        except Unavailable as error:
            raise Failure(f"the results are not published: {error}") from error


def standings(context: Context, *, publish: bool) -> list[Standings]:
    """Where a check keeps what it found, by its options: the file of --standing, the topic of --publish."""
    files = [context.standing] if context.standing is not None else []
    return [Standings(context.settings, file) for file in [*files, *([None] if publish else [])]]


def suspended_judges(standing: str, settings: Settings, judges: Iterable[Judge], today: date) -> dict[str, str]:
    """Why judges are suspended, by id: as the topic says where `standing` is TOPIC, else the file of that name. Raises
    BadFile, and Failure where the topic can't be read: no gate passes by a judge of which that is not known."""
    if standing != TOPIC:
        return suspended_by_file(Path(standing), judges, today)
    from rampgate.wiring import make_access
    from streams.gates.judge_standing import suspended_now

    topic = Topics(settings.topic_prefix)["judge-standing"]
    versions = {judge.id: judge.version for judge in judges}
    try:
        return dict(run(partial(suspended_now, make_access(settings), topic, WallClock(), versions)))
    except Unavailable as error:
        raise Failure(f"--standing: {error}") from error


def suspended_by_file(path: Path, judges: Iterable[Judge], today: date) -> dict[str, str]:
    """Why judges are suspended, by id, as the records of a file say. Raises BadFile, which names file and line."""
    known = known_by_file(path)
    return {judge.id: why for judge in judges if (why := known.why(judge.id, judge.version, today))}


def known_by_file(path: Path) -> Suspensions:
    """All that the records of a file say. Raises BadFile, which names file and line."""
    known = Suspensions()
    for _, record in read(path, StandingRecord):
        known.add(record)
    return known
