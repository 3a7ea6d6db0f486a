"""Seeded traffic and its oracle: what Opik, coverage, conservation and the dead letters must say at the end.

The oracle knows the contracts (§1, §2) and none of our code: it never imports agents, streams or schemas. It looks at
the events of a turn as a set, so it can't depend on their order of arrival.
"""

from __future__ import annotations

import json
import random
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

Topic = Literal["thumbs", "rerolls", "traces"]
KIND: dict[str, str] = {"thumbs": "thumbs", "rerolls": "reroll", "traces": "trace"}
PROJECTS = {"receipts": "receipts-eval", "rewards_assistant": "consumer-agent"}
VERTICALS = ("receipts", "rewards_assistant", "pantry", "meal_plans")
"""The last two are registered nowhere."""
REROLL_WINDOW_MS = 300_000
THUMBS, REROLL = "user_signal_thumbs", "user_signal_reroll"


class Message(NamedTuple):
    topic: Topic
    key: bytes | None
    value: bytes | None


class Thumb(NamedTuple):
    sequence: int
    value: int
    at: int


@dataclass
class Turn:
    """One turn as it really was. Times in ms; `trace_in`: where its trace can be learnt from."""

    response_id: str
    trace_id: str
    vertical: str
    project: str
    ended: int
    trace_in: Literal["event", "opik", "nowhere"]
    judged: Literal["event", "opik", "no"]
    thumbs: list[Thumb] = field(default_factory=list)
    rerolls: list[int] = field(default_factory=list)
    derived: bool = False
    session: str = ""
    said: str = ""
    started: int = 0

    @property
    def thumb(self) -> int:
        """Where the user's thumb ended up: the highest sequence number wins."""
        return max(self.thumbs).value if self.thumbs else 0

    @property
    def rerolled(self) -> bool:
        return bool(self.rerolls) or self.derived

    @property
    def active(self) -> bool:
        return self.thumb != 0 or self.rerolled


@dataclass
class Mix:
    """Shares of the traffic. `garbage` is per turn; `same_partition_key` false gives some records no key."""

    no_trace: float = 0.05
    opik_only: float = 0.01
    judged_event: float = 0.6
    judged_opik: float = 0.01
    thumbs: float = 0.55
    rerolls: float = 0.08
    derived: float = 0.04
    duplicates: float = 0.08
    garbage: float = 0.02
    late: float = 0.15
    filtered: float = 0.01


@dataclass
class Expected:
    scores: dict[tuple[str, str], float]
    coverage: Counter[tuple[str, str]]
    consumed: Counter[str]
    filtered: Counter[str]
    garbage: Counter[tuple[str, bytes | None, bytes | None]]
    """(topic, key, value) of each record that can't be decoded."""
    missing: set[str]
    """Turns with a standing signal and no trace anywhere."""


class Traffic:
    """`turns` seeded turns. `batches()` gives the messages in their order of arrival; `expected()` is the oracle."""

    def __init__(self, seed: int, turns: int, now_ms: int, mix: Mix | None = None) -> None:
        self.seed, self.now, self.mix = seed, now_ms, mix or Mix()
        self._random = random.Random(seed)
        self.turns: list[Turn] = []
        self._garbage: list[Message] = []
        self._filtered: Counter[str] = Counter()
        self.messages: list[Message] = []
        self._make(turns)

    # ---- the turns

    def _make(self, count: int) -> None:
        dice, mix = self._random, self.mix
        placed: list[tuple[float, Message]] = []
        for number in range(count):
            turn = self._turn(number)
            self.turns.append(turn)
            at = number + dice.random()
            for message in self._events(turn):
                late = dice.random() < mix.late
                placed.append((at + (dice.uniform(0, count / 3) if late else dice.uniform(0, 30)), message))
                if dice.random() < mix.duplicates:
                    placed.append((at + dice.uniform(0, count / 4), message))
            if dice.random() < mix.derived and turn.trace_in == "event" and number + 1 < count:
                follower = self._follower(turn)
                self.turns.append(follower)
                placed += [(at + dice.uniform(0, count / 4), message) for message in self._events(follower)]
            if dice.random() < mix.garbage:
                bad = self._bad(number)
                self._garbage.append(bad)
                placed.append((at, bad))
            if dice.random() < mix.filtered:
                placed.append((at, self._ttl(turn)))
                self._filtered["thumbs"] += 1
        placed.sort(key=lambda pair: pair[0])
        self.messages = [message for _, message in placed]

    def _turn(self, number: int) -> Turn:
        dice, mix = self._random, self.mix
        vertical = dice.choice(VERTICALS)
        roll = dice.random()
        where: Literal["event", "opik", "nowhere"] = (
            "nowhere" if roll < mix.no_trace else "opik" if roll < mix.no_trace + mix.opik_only else "event"
        )
        roll = dice.random()
        judged: Literal["event", "opik", "no"] = (
            "event" if roll < mix.judged_event else "opik" if roll < mix.judged_event + mix.judged_opik else "no"
        )
        if where == "opik" and judged == "event":
            judged = "opik"
        started = self.now - dice.randint(120_000, 7_200_000)
        ended = started + dice.randint(200, 9_000)
        turn = Turn(
            response_id=f"r{self.seed}-{number}",
            trace_id=uuid7(dice, started),
            vertical=vertical,
            project=PROJECTS.get(vertical, f"{vertical}-project"),
            started=started,
            ended=ended,
            trace_in=where,
            judged=judged,
            session=f"s{self.seed}-{number}",
            said=f"question {number}",
        )
        if dice.random() < mix.thumbs:
            sequence = dice.randint(10**20, 10**21)
            at = ended
            for _ in range(dice.choice((1, 1, 1, 2, 2, 3, 4))):
                sequence += dice.randint(1, 10**6)
                at += dice.randint(100, 5_000)
                turn.thumbs.append(Thumb(sequence, dice.choice((1, 1, -1, -1, 0)), min(at, self.now)))
        if dice.random() < mix.rerolls:
            turn.rerolls = [ended + dice.randint(1_000, 60_000) for _ in range(dice.choice((1, 1, 2)))]
        if where == "opik" and not turn.active:
            # It counts as judged only if its trace was sought before the thumb was withdrawn: a matter of moments.
            turn.judged = "no"
        return turn

    def _follower(self, turn: Turn) -> Turn:
        """The same input again in the same session: within the window it is a reroll of `turn`, beyond it is none."""
        dice = self._random
        inside = dice.random() < 0.7
        started = turn.ended + (dice.randint(0, REROLL_WINDOW_MS) if inside else REROLL_WINDOW_MS + 5_000)
        started = min(started, self.now - 1_000)
        if 0 <= started - turn.ended <= REROLL_WINDOW_MS:
            turn.derived = True
        return Turn(
            response_id=turn.response_id + "-again",
            trace_id=uuid7(dice, started),
            vertical=turn.vertical,
            project=turn.project,
            started=started,
            ended=started + 500,
            trace_in="event",
            judged="event" if dice.random() < 0.5 else "no",
            session=turn.session,
            said=turn.said,
        )

    # ---- their events

    def _events(self, turn: Turn) -> Iterator[Message]:
        dice, key = self._random, turn.response_id.encode()
        before = 0
        for thumb in turn.thumbs:
            yield Message("thumbs", key, encode(self._thumb(turn, thumb, before)))
            before = thumb.value
        for number, at in enumerate(turn.rerolls):
            event = {
                "event_id": f"{turn.response_id}/reroll/{number}",
                "response_id": turn.response_id,
                "new_response_id": f"{turn.response_id}-new-{number}",
                "session_id": "",
                "elapsed_seconds": round((at - turn.ended) / 1000, 3),
                "occurred_at": iso(at),
                "vertical": turn.vertical,
            }
            yield Message("rerolls", key, encode(event))
        if turn.trace_in == "event":
            scores = [{"name": "helpfulness", "value": 0.7, "source": "online_scoring"}]
            event = {
                "event_id": f"{turn.response_id}/trace",
                "trace_id": turn.trace_id,
                "response_id": turn.response_id,
                "project_name": turn.project,
                "started_at": iso(turn.started),
                "ended_at": iso(turn.ended),
                "input": {"text": turn.said},
                "metadata": {"vertical": turn.vertical, "sub_agent": "main", "session_id": turn.session},
                "feedback_scores": scores if turn.judged == "event" else dice.choice(([], None, [USER_SCORE])),
            }
            yield Message("traces", key, encode(event))

    def _thumb(self, turn: Turn, thumb: Thumb, before: int) -> dict[str, Any]:
        word = {1: "up", -1: "down", 0: None}[thumb.value]
        if self._random.random() < 0.3:
            return {
                "event_id": f"{turn.response_id}/{thumb.sequence}",
                "response_id": turn.response_id,
                "user_id": "u",
                "value": word,
                "occurred_at": iso(thumb.at),
                "sequence": str(thumb.sequence),
            }
        return change(turn.response_id, thumb.sequence, thumb.at, thumb.value, before)

    def _ttl(self, turn: Turn) -> Message:
        """An expiry by time-to-live with a higher sequence than any of the user's: it must change nothing."""
        record = change(turn.response_id, 10**22, turn.ended, 0, 1)
        record["userIdentity"] = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
        return Message("thumbs", turn.response_id.encode(), encode(record))

    def _bad(self, number: int) -> Message:
        """Records nobody can decode. The key tells them apart."""
        dice = self._random
        topic: Topic = dice.choice(("thumbs", "rerolls", "traces"))
        good: dict[str, Any] = {"event_id": "e", "response_id": f"bad{number}"}
        key = f"bad-{self.seed}-{number}".encode()
        value = dice.choice(
            (
                b"{not json %d" % number,
                b"\xff\xfe\x00 bad utf-8 %d" % number,
                None,
                b"[" * 2_000,
                encode({"hello": number}),
                encode(good | {"value": "sideways", "occurred_at": iso(self.now)}),
                encode(good | {"value": "up", "occurred_at": "yesterday"}),
                encode(good | {"value": "up", "occurred_at": 1e300}),
                b'{"response_id": "x", "event_id": "e", "value": "up", "occurred_at": NaN}',
            )
        )
        return Message(topic, key, value)

    # ---- Opik's side

    def opik_traces(self) -> list[dict[str, Any]]:
        """The traces Opik holds: of every turn that has one."""
        return [
            {
                "id": turn.trace_id,
                "project_name": turn.project,
                "name": "turn",
                "start_time": iso(turn.started),
                "end_time": iso(turn.ended),
                "input": {"text": turn.said},
                "output": {},
                "metadata": {"response_id": turn.response_id, "vertical": turn.vertical, "sub_agent": "main"},
            }
            for turn in self.turns
            if turn.trace_in != "nowhere"
        ]

    def opik_judgements(self) -> list[dict[str, Any]]:
        """Judge scores that stand in Opik and in no event."""
        return [
            {
                "id": turn.trace_id,
                "project_name": turn.project,
                "name": "helpfulness",
                "value": 0.5,
                "source": "online_scoring",
            }
            for turn in self.turns
            if turn.judged == "opik" and turn.trace_in != "nowhere"
        ]

    # ---- the oracle

    def expected(self, messages: list[Message] | None = None) -> Expected:
        """What must stand at the end, when all of `messages` (default: all there are) were consumed."""
        sent = self.messages if messages is None else messages
        scores: dict[tuple[str, str], float] = {}
        coverage: Counter[tuple[str, str]] = Counter()
        missing = set()
        for turn in self.turns:
            known = turn.trace_in == "event" or (turn.trace_in == "opik" and turn.active)
            if known and turn.active:
                coverage[turn.vertical, "both_present"] += 1
                if turn.thumb:
                    scores[turn.trace_id, THUMBS] = float(turn.thumb)
                scores[turn.trace_id, REROLL] = 1.0 if turn.rerolled else 0.0
            elif known and turn.judged != "no":
                coverage[turn.vertical, "missing_signal"] += 1
            elif not known and turn.active:
                coverage["unknown", "missing_trace"] += 1
                missing.add(turn.response_id)
        return Expected(
            scores,
            coverage,
            Counter(KIND[m.topic] for m in sent),
            Counter({KIND[topic]: n for topic, n in self._filtered.items()}),
            Counter((m.topic, m.key, m.value) for m in self._garbage),
            missing,
        )


USER_SCORE = {"name": THUMBS, "value": 1.0, "source": "sdk"}
"""A user's signal is no judge score."""


def change(response_id: str, sequence: int, at: int, value: int, before: int) -> dict[str, Any]:
    """A DynamoDB stream record. A withdrawal is a REMOVE, or a MODIFY whose attribute is gone."""
    keys = {"MessageId": {"S": "m-" + response_id}}
    item = keys | {"ResponseId": {"S": response_id}, "UserId": {"S": "u"}}
    word = {1: {"S": "up"}, -1: {"N": "-1"}}
    removed = value == 0 and sequence % 2 == 0
    record: dict[str, Any] = {
        "Keys": keys,
        "SequenceNumber": str(sequence),
        "ApproximateCreationDateTime": at / 1000,
        "OldImage": item | ({"Thumbs": word[before]} if before else {}),
    }
    if not removed:
        record["NewImage"] = item | ({"Thumbs": word[value]} if value else {})
    name = "REMOVE" if removed else "MODIFY" if before else "INSERT"
    return {"eventID": f"{response_id}/{sequence}", "eventName": name, "dynamodb": record}


def encode(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def uuid7(dice: random.Random, ms: int) -> str:
    bits = (ms & (1 << 48) - 1) << 80 | 7 << 76 | dice.getrandbits(12) << 64 | 2 << 62 | dice.getrandbits(62)
    return str(uuid.UUID(int=bits))
