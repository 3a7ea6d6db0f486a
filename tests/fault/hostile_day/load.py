"""A steady load: turns with their traces, thumbs and rerolls, flips of turns long settled, bad records, ramp steps."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Producer

from tests.fault.faulty_opik import FaultyOpik
from tests.fault.ledger.ledger import Sent
from tests.fault.traffic import Mix, Traffic
from tests.fault.turn_events import change, encode
from tests.fault.turns import Thumb, Turn

VERSIONS = ("v-1", "v-2")
MIX = Mix(no_trace=0.0, opik_only=0.0, judged_opik=0.0, versions=VERSIONS)
"""Every turn's trace is on the topic: that a turn has none is only known after minutes, which no round lasts."""
TURNS = 400
"""Of one piece of traffic: what is late arrives within a third of that."""
FLIPS, STEPS, TRACED = 0.12, 0.05, 0.1
"""A record; more of them are sent: a flip of any earlier turn, and a ramp-step request. Of these so many are about a
version with traces, all others about one that has none and was never asked about."""


class Load(threading.Thread):
    """Sends until `end`; `sent` is what Kafka has acknowledged and said where it is.

    `unsure`: acknowledged without a place. The client takes it for a success where a repeated request is refused as a
    duplicate; the log can have lost the first one since, by a change of leaders.
    """

    def __init__(self, bootstrap: str, opik: FaultyOpik, prefix: str, seed: int, per_second: float) -> None:
        super().__init__(daemon=True, name="load")
        self._opik, self._prefix, self._seed, self._per_second = opik, prefix, seed, per_second
        self._dice = random.Random(seed)
        self._turns: list[Turn] = []
        self._steps: list[dict[str, Any]] = []
        self._going = threading.Event()
        self._idle = threading.Event()
        self._ended = False
        self.sent: Counter[Sent] = Counter()
        self.unsure: Counter[Sent] = Counter()
        self.refused: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 2,
                "message.timeout.ms": 120_000,
                "enable.idempotence": True,
                "log_level": 0,
            }
        )

    def go(self) -> None:
        self._idle.clear()
        self._going.set()

    def rest(self, seconds: float = 150.0) -> None:
        """Sends no more for now; returns when all is stored."""
        self._going.clear()
        assert self._idle.wait(seconds), "the load does not come to rest"
        assert self._producer.flush(seconds) == 0, "Kafka takes no records"
        assert not self.refused, self.refused[:5]

    def end(self) -> None:
        self._ended = True
        self._going.set()
        self.join(30)
        self._producer.flush(5)

    def run(self) -> None:
        number = 0
        while not self._ended:
            traffic = Traffic(self._seed * 1_000 + number, TURNS, time.time_ns() // 1_000_000, MIX)
            number += 1
            self._opik.load(traffic)
            last = {turn.response_id: turn for turn in traffic.turns}
            for message in traffic.messages:
                self._pause()
                if self._ended:
                    return
                self._send(message.topic, message.key, message.value)
                if self._dice.random() < FLIPS:
                    self._flip()
                if self._dice.random() < STEPS:
                    self._step()
            self._turns += [turn for turn in last.values() if turn.thumbs]

    def _pause(self) -> None:
        if not self._going.is_set():
            self._idle.set()
            self._going.wait()
        time.sleep(self._dice.uniform(0.0, 2.0 / self._per_second))

    def _flip(self) -> None:
        """Of a turn that was settled before, as likely as not a short time ago."""
        if not self._turns:
            return
        turn = self._dice.choice(self._turns[-50:] if self._dice.random() < 0.5 else self._turns)
        before = max(turn.thumbs)
        value = self._dice.choice([value for value in (1, 1, -1, -1, 0) if value != before.value])
        thumb = Thumb(before.sequence + self._dice.randint(1, 10**6), value, time.time_ns() // 1_000_000)
        turn.thumbs.append(thumb)
        record = change(turn.response_id, thumb.sequence, thumb.at, value, before.value)
        self._send("thumbs", turn.response_id.encode(), encode(record))

    def _step(self) -> None:
        """A new one; or, now and then, an earlier one again, as it was or with another body; or an unreadable one."""
        roll = self._dice.random()
        if roll < 0.05:
            self._send("ramp-steps", b"e-bad", b"{no request %d" % self._dice.getrandbits(30))
            return
        if roll < 0.2 and self._steps:
            step = self._dice.choice(self._steps)
            if roll < 0.1:
                step = step | {"agent_version": f"v{self._dice.getrandbits(30)}"}
        else:
            before, after = self._dice.choice(
                ((5, 25), (25, 50), (5, 5), (0, 5), (25, 100), (0, 100), (5, 101), (50, 5))
            )
            number = len(self._steps)
            step = self._request(f"q{self._seed}-{number}", number, before, after, f"untraced-{self._seed}-{number}")
            if self._dice.random() < TRACED:
                step |= {"from_percent": 0, "to_percent": 5, "agent_version": self._dice.choice(VERSIONS)}
            self._steps.append(step)
        self._send("ramp-steps", str(step["experiment_id"]).encode(), encode(step))

    def ask_of_all(self, number: int) -> None:
        """Ask for the first step of each version, once all that was sent is consumed: its sample is all of that."""
        for version in VERSIONS:
            name = f"closing-{self._seed}-{number}-{version}"
            step = self._request(name, number, 0, 5, version)
            self._send("ramp-steps", str(step["experiment_id"]).encode(), encode(step))
        assert self._producer.flush(150.0) == 0, "Kafka takes no records"

    @staticmethod
    def _request(name: str, number: int, before: float, after: float, version: str) -> dict[str, Any]:
        return {
            "request_id": name, "experiment_id": f"e-{number % 20}", "agent_id": "assistant",
            "agent_version": version, "vertical": "receipts", "from_percent": before, "to_percent": after,
            "ramp_steps": [5, 25, 50, 100],
            "eval_gates": {"pre_ramp": ["ux_quality"], "pre_full": ["ux_quality"]},
            "requested_at": datetime.now(UTC).isoformat(), "deadline_seconds": 600,
        }  # fmt: skip

    def _send(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        while True:
            try:
                self._producer.produce(self._prefix + topic, value, key, on_delivery=self._delivered)
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.refused.append(str(error))
            return
        told = self.unsure if message.offset() is None or message.offset() < 0 else self.sent
        told[message.topic().removeprefix(self._prefix), message.key(), message.value()] += 1
