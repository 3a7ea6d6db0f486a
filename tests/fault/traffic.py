"""Seeded traffic: turns, their events in an order of arrival, and what Opik holds of them. What must come of it is the
oracle's to say."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Literal

from tests.fault.turn_events import AGENT, events, expiry, iso, trace_of, undecodable
from tests.fault.turns import Message, Thumb, Turn

PROJECTS = {"receipts": "receipts-eval", "rewards_assistant": "consumer-agent"}
VERTICALS = ("receipts", "rewards_assistant", "pantry", "meal_plans")
"""The last two are registered nowhere."""
REROLL_WINDOW_MS = 300_000


@dataclass
class Mix:
    """Shares of the traffic; `garbage` and `filtered` are per turn. `versions` share the turns, whose traces name none
    where it is empty. Of turns with a version, so many are `started` and posted again at their end, are posted `again`
    with another output, never end (`unended`), or have a category that no one takes (`too_long`)."""

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
    versions: tuple[str, ...] = ()
    started: float = 0.2
    again: float = 0.1
    unended: float = 0.02
    too_long: float = 0.01


class Traffic:
    """`turns` seeded turns. `messages` are in their order of arrival."""

    def __init__(self, seed: int, turns: int, now_ms: int, mix: Mix | None = None) -> None:
        self.seed, self.now, self.mix = seed, now_ms, mix or Mix()
        self._random = random.Random(seed)
        self.turns: list[Turn] = []
        self.garbage: list[Message] = []
        self.filtered: Counter[str] = Counter()
        self.messages: list[Message] = []
        self._make(turns)

    def _make(self, count: int) -> None:
        dice, mix = self._random, self.mix
        placed: list[tuple[float, Message]] = []
        for number in range(count):
            turn = self._turn(number)
            self.turns.append(turn)
            at = number + dice.random()
            if mix.versions:
                turn.version = dice.choice(mix.versions)
            for message in self._rather(turn, list(events(turn, dice))):
                late = dice.random() < mix.late
                placed.append((at + (dice.uniform(0, count / 3) if late else dice.uniform(0, 30)), message))
                if dice.random() < mix.duplicates:
                    placed.append((at + dice.uniform(0, count / 4), message))
            if dice.random() < mix.derived and turn.trace_in == "event" and number + 1 < count:
                follower = self._follower(turn)
                self.turns.append(follower)
                placed += [(at + dice.uniform(0, count / 4), message) for message in events(follower, dice)]
            if dice.random() < mix.garbage:
                bad = undecodable(str(self.seed), number, self.now, dice)
                self.garbage.append(bad)
                placed.append((at, bad))
            if dice.random() < mix.filtered:
                placed.append((at, expiry(turn)))
                self.filtered["thumbs"] += 1
        placed.sort(key=lambda pair: pair[0])
        self.messages = [message for _, message in placed]

    def _rather(self, turn: Turn, usual: list[Message]) -> list[Message]:
        """The turn's events as tracing posts them of an agent that names its version."""
        dice, mix = self._random, self.mix
        if not turn.version or turn.trace_in != "event":
            return usual
        ended, roll = iso(turn.ended), dice.random()
        # What a session knows of a turn that runs is for other tests.
        start = trace_of(replace(turn, session=""), {"ended_at": None, "output": None})
        others = [message for message in usual if message.topic != "traces"]
        if roll < mix.unended:
            turn.unended = True
            return [*others, start]
        if roll < mix.unended + mix.too_long:
            bad = trace_of(turn, {"ended_at": ended}, category="c" * 129)
            self.garbage.append(bad)
            return [*others, bad]
        if roll < mix.unended + mix.too_long + mix.again:
            return [trace_of(turn, {"ended_at": ended, "output": None}), *usual]
        return [start, *usual] if roll < mix.unended + mix.too_long + mix.again + mix.started else usual

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
            version=turn.version,
        )

    # ---- Opik's side

    def opik_traces(self) -> list[dict[str, Any]]:
        """The traces Opik holds: of every turn that has one."""
        return [
            {
                "id": turn.trace_id,
                "project_name": turn.project,
                "name": "turn",
                "start_time": iso(turn.started),
                **({} if turn.unended else {"end_time": iso(turn.ended)}),
                "input": {"text": turn.said},
                "output": {},
                "metadata": {
                    "response_id": turn.response_id,
                    "vertical": turn.vertical,
                    "sub_agent": "main",
                    **({"agent_id": AGENT, "agent_version": turn.version} if turn.version else {}),
                },
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


def uuid7(dice: random.Random, ms: int) -> str:
    bits = (ms & (1 << 48) - 1) << 80 | 7 << 76 | dice.getrandbits(12) << 64 | 2 << 62 | dice.getrandbits(62)
    return str(uuid.UUID(int=bits))
