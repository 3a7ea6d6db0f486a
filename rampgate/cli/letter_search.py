"""From flags to a filter, and from a name or a place to one letter."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

from rampgate.cli.common import Failure
from rampgate.cli.moments import parse_moment
from rampgate.wiring import Parts
from schemas.letters import Letter, read_letter
from schemas.outcomes import Cause
from schemas.topics import CONSUMED, PRODUCED, Topics
from streams.dead_letters import LetterFilter, Progress, read_letters


def letter_filter(
    topics: Topics,
    causes: Sequence[str] | None,
    since: str | None,
    until: str | None,
    names: Sequence[str] | None,
    key: str | None,
    stage: str | None,
    replay_id: str | None,
) -> LetterFilter:
    """Raises Failure naming the flag that is wrong."""
    now = time.time_ns() // 1_000_000
    known = {cause.value: cause for cause in Cause}
    for cause in causes or ():
        if cause not in known:
            raise Failure(f"--cause: there is none called {cause[:64]!r}; there are {', '.join(known)}")
    return LetterFilter(
        causes=frozenset(known[cause] for cause in causes or ()),
        topics=frozenset(full_name(topics, name) for name in names or ()),
        key=key,
        stage=stage,
        replay_id=checked_id(replay_id, "--replay-id") if replay_id is not None else None,
        since=parse_moment(since, "--since", now),
        until=parse_moment(until, "--until", now),
    )


def full_name(topics: Topics, name: str) -> str:
    """A topic of ours by its short name gets the prefix; any other name stays as it is."""
    return topics[name] if name in CONSUMED + PRODUCED else name


def checked_id(text: str, flag: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise Failure(
            f"{flag}: {text[:64]!r} is no replay id (a UUID); `rampgate dead-letters list` has them"
        ) from None


async def find(parts: Parts, text: str, progress: Progress) -> tuple[Letter, list[str]]:
    """The letter by its own place, by the place of the record it carries, or by replay id; of several the one of the
    last attempt, and where the others lie. Raises Failure when there is none."""
    topic = parts.topics["dead-letters"]
    if "/" in text:
        name, *rest = text.rsplit("/", 2)
        if len(rest) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in rest):
            raise Failure(f"{text[:128]!r} is no place: give topic/partition/offset, such as {topic}/0/12")
        partition, offset = map(int, rest)
        if full_name(parts.topics, name) == topic:
            (record,) = await parts.records.fetch([(topic, partition, offset)])
            if record is None:
                raise Failure(f"{topic}/{partition} holds no record at offset {offset}")
            return read_letter(record), []
        wanted = LetterFilter(came_from=f"{full_name(parts.topics, name)}/{partition}/{offset}")
    else:
        wanted = LetterFilter(replay_id=checked_id(text, "the letter"))
    best: Letter | None = None
    places: list[str] = []
    async for chunk in read_letters(parts.access, topic, wanted, progress):
        places += [letter.place for letter in chunk]
        best = max([best, *chunk] if best is not None else chunk, key=lambda one: (one.attempts, one.failed_at))
    if best is None:
        raise Failure(f"there is no dead letter for {text}; `rampgate dead-letters list` shows what there is")
    return best, [place for place in places if place != best.place]
