"""Overrides of gates: what a merge brought and who approved it, their central log, and the report of a quarter (PC5
§5.2, §5.5).

GitHub says who approved; the push of the merge appends to the audit, of which another step with Kafka's password sends
the lines to the log. What the log does not have holds nowhere.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from agents.ports import Unauthorized, Unavailable
from evalcore.gates.overrides import PullRequest
from evalcore.gates.skips import Skips
from rampgate.ci_gate.github import REPOSITORY, read_pull_request
from rampgate.console import Failure, run
from rampgate.files import append_file
from rampgate.settings import Settings, revealed
from rampgate.settings_sources import load_settings
from rampgate.wiring import make_access, producing
from schemas.dead_letters import Record
from schemas.topics import Topics
from schemas.zoned_time import ZonedTime, is_ahead
from streams.gates.gate_skips import GateSkips
from streams.kafka.reading import appended_ms, records_now
from streams.retry import WallClock

TOPIC: Final = "gate-overrides"
KINDS: Final = ("gate_skip", "baseline_shift", "enforcement")
NAMESPACE: Final = uuid.UUID("6f1d1a52-3c0b-5b5e-9a53-5a1e0c2b7d11")
_QUARTER: Final = re.compile(r"(\d{4})-?Q([1-4])", re.ASCII | re.IGNORECASE)
_ZONED: Final = TypeAdapter(ZonedTime)
_MORE: Final = ("agent_id", "agent_version", "vertical")
_SAME: Final = ("kind", "repository", "pull_request", "head", "milestone", "judges", "approved_by", "expires")


@dataclass(frozen=True)
class Quarter:
    """From `first`, a day, up to `after`, the first day that is no longer in it."""

    name: str
    first: date
    after: date

    @classmethod
    def of(cls, word: str) -> Quarter:
        """Reads 2026-Q4. Raises ValueError."""
        found = _QUARTER.fullmatch(word.strip())
        if found is None:
            raise ValueError(f"{word[:20]!r} is no quarter, such as 2026-Q4")
        year, number = int(found[1]), int(found[2])
        after = date(year + 1, 1, 1) if number == 4 else date(year, 3 * number + 1, 1)
        return cls(f"{year}-Q{number}", date(year, 3 * number - 2, 1), after)

    def holds(self, entry: Mapping[str, Any]) -> bool:
        """Tells whether an override was used in the quarter; one whose time has no zone, or that has none, counts in
        every quarter."""
        at = _time(entry)
        return at is None or self.first <= at.date() < self.after


def event_id(entry: Mapping[str, Any]) -> str:
    """Returns the id of an override: the same for each run of the same commit of its pull request."""
    about = [entry.get(name) for name in _SAME] + [entry[name] for name in _MORE if name in entry]
    text = orjson.dumps(about).decode()
    return str(uuid.uuid5(NAMESPACE, text))


async def publish(settings: Settings, entries: Sequence[Mapping[str, Any]]) -> None:
    """Send the audit's lines of overrides, and return once they are durable. Raises Unavailable."""
    records = [{"event_id": event_id(entry), **entry} for entry in entries]
    lines = [(_topic(settings), str(one["repository"]).encode(), orjson.dumps(one), ()) for one in records]
    async with producing(settings) as producer:
        await producer.send(lines)


def _topic(settings: Settings) -> str:
    return Topics(settings.topic_prefix, settings.audit_topic)[TOPIC]


async def read_skips(settings: Settings) -> Skips:
    """Return the overrides that skip gates of rollouts. Raises Unavailable, also where there is no such topic."""
    return (await GateSkips(make_access(settings), _topic(settings), WallClock()).read_once()).skips


async def read(settings: Settings, quarter: Quarter) -> list[dict[str, Any]]:
    """Return what was published since the quarter began; what is dated ahead of that has no time. Raises
    Unavailable."""
    since = datetime(quarter.first.year, quarter.first.month, 1, tzinfo=UTC).timestamp() * 1000
    records = records_now(make_access(settings), _topic(settings), round(since))
    return [entry async for record in records if (entry := _entry(record)) is not None]


def _entry(record: Record) -> dict[str, Any] | None:
    try:
        entry = orjson.loads(record.value or b"")
    except orjson.JSONDecodeError:
        return None
    if not isinstance(entry, dict):
        return None
    at = _time(entry)
    ahead = at is not None and is_ahead(at, appended_ms(record, WallClock().now_ms()))
    return entry | {"at": None} if ahead else entry


def _time(entry: Mapping[str, Any]) -> datetime | None:
    try:
        return _ZONED.validate_python(entry.get("at"))
    except ValidationError:
        return None


def report(entries: Iterable[Mapping[str, Any]], quarter: Quarter) -> dict[str, Any]:
    """Returns the overrides of a quarter, each once, and who asked for and allowed how many."""
    once = {
        event_id(entry): dict(entry) for entry in entries if entry.get("kind") in KINDS and quarter.holds(entry)
    }  # fmt: skip
    found = sorted(once.values(), key=lambda entry: (str(entry.get("at")), str(entry.get("pull_request"))))

    def counted(*names: str) -> dict[str, int]:
        return dict(Counter(" ".join(word) for entry in found for word in _words(entry, names)).most_common())

    return {
        "quarter": quarter.name,
        "overrides": found,
        "count": len(found),
        "by_kind": counted("kind"),
        "by_milestone": dict(Counter(str(one["milestone"]) for one in found if one.get("milestone")).most_common()),
        "by_repository": counted("repository"),
        "by_author": counted("author"),
        "by_approver": counted("approved_by"),
        "by_pair": counted("author", "approved_by"),
    }


def _words(entry: Mapping[str, Any], names: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yields an entry's words, once for each of who approved it where that is asked for."""
    known = {name: str(entry.get(name) or "unknown") for name in names}
    for one in known.get("approved_by", "").split(","):
        yield [one.strip().removeprefix("@").casefold() if name == "approved_by" else known[name] for name in names]


def looked_up(pull_request: str | None) -> PullRequest | None:
    """What GitHub says of the pull request OWNER/NAME#NUMBER; None without one. Raises Failure."""
    if pull_request is None:
        return None
    repository, _, number = pull_request.rpartition("#")
    if not REPOSITORY.fullmatch(repository) or not number.isascii() or not number.isdigit() or len(number) > 9:
        raise Failure(f"--pull-request: must be OWNER/NAME#NUMBER, as GitHub names it, got {pull_request[:120]!r}")
    settings = load_settings()
    url, token = settings.github_url, revealed(settings.github_token)
    try:
        return run(lambda: read_pull_request(url, token, repository, int(number)))
    except (Unavailable, Unauthorized) as error:
        raise Failure(str(error)) from error


def append_merge(
    audit: Path, pull: PullRequest | None, merged_as: str, overrides: Mapping[str, Sequence[Mapping[str, Any]]]
) -> None:
    """Append the overrides of a merge, by their kinds. Raises Failure where the commit is not what the pull request was
    merged as: an override of a pull request that still can change is none."""
    if pull is None or pull.merged_as != merged_as:
        raise Failure(
            f"--audit: {merged_as[:12]} is not what the pull request was merged as: only from the push of its merge, "
            "--head COMMIT --pull-request OWNER/NAME#N, does an override reach the audit"
        )
    about = {"repository": pull.repository, "pull_request": f"#{pull.number}", "author": pull.author, "head": pull.head}
    for kind, entries in overrides.items():
        write(audit, kind, [{**about, **entry} for entry in entries])


def write(audit: Path | None, kind: str, entries: Sequence[Mapping[str, Any]]) -> None:
    """Append a line for each entry, before what it is about is done. Raises Failure where that can't be done."""
    if audit is None:
        raise Failure("an override needs an entry in the audit: --audit FILE")
    at = datetime.now(UTC).isoformat(timespec="seconds")
    told = [orjson.dumps({"at": at, "kind": kind, **entry}) + b"\n" for entry in entries]
    append_file(audit, b"".join(told), "no override holds without the audit:")
