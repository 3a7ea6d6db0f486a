"""A dead letter as read back from its topic, and the shapes that `rampgate dead-letters --json` answers with."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum

from typing_extensions import TypedDict

from schemas.dead_letters import (
    ATTEMPTS,
    CUTS,
    MAC,
    PREFIX,
    REPLAY_ID,
    Header,
    Record,
    attempts_of,
    clean,
    mac_of,
    replay_id_of,
    sealed_over,
)
from schemas.outcomes import Cause
from schemas.seals import Seal

MAX_ATTEMPTS = 5
"""A record that failed so often is left alone unless told otherwise."""
_CAUSES = {cause.value: cause for cause in Cause}
_NUMBER = re.compile(r"-?\d{1,18}")


class DeadLetterState(StrEnum):
    """`replayed`: sent back, its end not known yet. `resolved`: the turn has this signal, or a newer one, settled."""

    OPEN = "open"
    REPLAYED = "replayed"
    RESOLVED = "resolved"
    NOT_REPLAYABLE = "not replayable"


@dataclass(frozen=True)
class StoredDeadLetter:
    """`record` is the dead letter itself, in the dead-letter topic; the other fields are of what it carries.

    `topic` is "" and `cause` None where the header is missing or unknown, numbers are -1: anyone may write to a topic.
    Times in ms since 1970. `mac` is the seal that its replay carries; a letter that is not `sealed` with our key (an
    older one, or a forged one) counts as one that never failed.
    """

    record: Record
    cause: Cause | None
    detail: str
    stage: str
    topic: str
    partition: int
    offset: int
    timestamp: int
    attempts: int
    failed_at: int
    replay_id: str
    cut: tuple[str, ...]
    mac: bytes = b""
    sealed: bool = True

    @property
    def place(self) -> str:
        """Returns the place of the letter in the dead-letter topic."""
        return f"{self.record.topic}/{self.record.partition}/{self.record.offset}"

    @property
    def came_from(self) -> str:
        """Returns the place of the original record; "" where it is not known."""
        return f"{self.topic}/{self.partition}/{self.offset}" if self.topic else ""

    @property
    def lost(self) -> bool:
        """Tells whether Kafka had already dropped the record, so that there are no bytes to replay."""
        return self.record.value is None and (not self.topic or self.timestamp <= 0)

    @property
    def original_headers(self) -> list[Header]:
        return [(name, content) for name, content in self.record.headers or () if not name.startswith(PREFIX)]

    @property
    def replay_headers(self) -> list[Header]:
        """Returns the original headers, and those by which a worker counts: attempts so far and the record's name, with
        the seal over both."""
        ours = [(MAC, self.mac), (ATTEMPTS, str(self.attempts).encode()), (REPLAY_ID, self.replay_id.encode())]
        return self.original_headers + ours

    @property
    def identity(self) -> str:
        """Returns the same text for two letters of one failure (a redelivery doubles them), whatever their places.

        The content is part of it, so that a producer that sends one replay id on many records can't hide any.
        """
        content = hashlib.sha256()
        for part in (self.topic.encode(), self.record.key or b"", self.record.value or b""):
            content.update(len(part).to_bytes(8, "big") + part)
        return f"{self.replay_id or self.place}:{self.attempts}:{content.hexdigest()[:16]}"


def parse_dead_letter(record: Record, seal: Seal | None = None) -> StoredDeadLetter:
    """Reads a dead letter. Never raises: a missing or garbled header gives an empty field.

    Without `seal`, as while the key is out of reach, attempts are shown as they stand; such a letter is not replayed.
    """
    texts: dict[str, str] = {}
    for name, content in record.headers or ():
        if name.startswith(PREFIX):
            texts.setdefault(name.removeprefix(PREFIX), (content or b"").decode(errors="replace"))

    def number(name: str) -> int:
        text = texts.get(name, "")
        return int(text) if _NUMBER.fullmatch(text) else -1

    failed_at, topic = number("failed-at"), clean(texts.get("topic", ""))
    attempts, replay_id, mac = attempts_of(record.headers), replay_id_of(record.headers) or "", mac_of(record.headers)
    sealed = seal is None or seal.holds(mac, sealed_over(topic, record.key, record.value, replay_id, attempts))
    if not sealed and seal is not None:
        attempts = 0
        mac = seal.of(sealed_over(topic, record.key, record.value, replay_id, attempts)).encode()
    return StoredDeadLetter(
        record,
        _CAUSES.get(texts.get("cause", "")),
        clean(texts.get("detail", "")),
        clean(texts.get("stage", ""), 100),
        topic,
        number("partition"),
        number("offset"),
        number("timestamp"),
        attempts,
        failed_at if failed_at >= 0 else record.timestamp,
        replay_id,
        tuple(name for name in CUTS if name.removeprefix(PREFIX) in texts),
        mac or b"",
        sealed,
    )


class DeadLetterAnswer(TypedDict):
    """One letter. Times are ISO 8601, `key` text with control characters escaped; doubled letters are `copies`."""

    replay_id: str
    place: str
    topic: str
    partition: int
    offset: int
    key: str | None
    timestamp: str | None
    failed_at: str
    attempts: int
    cause: str
    detail: str
    stage: str
    size: int | None
    state: str
    why: str
    copies: int
    means: str
    do: str


class DeadLetterList(TypedDict):
    """`total` and `by_cause` count every letter that matches, doubled ones once; `letters` has the last `--limit`.

    `states_known` is false where Redis is out of reach: then replayed and resolved letters may show as open.
    """

    letters: list[DeadLetterAnswer]
    total: int
    by_cause: dict[str, int]
    states_known: bool


class ReplayAnswer(TypedDict):
    """Letters that matched by what became of them; `refused` has each that can't be replayed, with its reason."""

    dry_run: bool
    matched: int
    replayed: int
    already_replayed: int
    resolved: int
    by_cause: dict[str, int]
    refused: list[DeadLetterAnswer]
    refused_total: int
