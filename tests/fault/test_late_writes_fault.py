"""Opik applies a write late, after newer ones: in the end it holds what the state says.

The local Opik keeps a request until it is told to apply it, and until then the reads with which a worker compares
scores too; so nothing here depends on how fast the machine is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import uuid6

from tests.fault.rig import Rig, now_ms
from tests.fault.turn_events import iso
from tests.fault.turns import REROLL, THUMBS, Message

Make = Callable[..., Rig]
PROJECT = "late"
PUT = {"method": "PUT", "path": "feedback-scores"}
READ = {"method": "GET", "path": "/traces/"}
SETTINGS = {"opik_doubt_seconds": 5, "opik_retry_seconds": 2, "opik_timeout_seconds": 120}


class Turns:
    """Some turns whose traces are known, and what users say of all of them."""

    def __init__(self, rig: Rig, count: int = 12) -> None:
        self.rig, self.at = rig, now_ms() - 60_000
        self.ids = {f"turn-{number}": str(uuid6.uuid7()) for number in range(count)}
        self._sequence = 0
        traces = [
            {"id": trace, "project_name": PROJECT, "start_time": iso(self.at), "metadata": {"response_id": turn}}
            for turn, trace in self.ids.items()
        ]
        rig.opik.call("POST", "/v1/private/traces/batch", {"traces": traces})
        judged = [{"name": "helpfulness", "value": 0.7, "source": "online_scoring"}]
        rig.send(
            self._message(
                "traces",
                turn,
                trace_id=trace,
                project_name=PROJECT,
                started_at=iso(self.at),
                ended_at=iso(self.at),
                metadata={"vertical": "shopping"},
                feedback_scores=judged,
            )
            for turn, trace in self.ids.items()
        )

    def say(self, value: str) -> None:
        """All users say this."""
        self._sequence += 1
        self.rig.send(
            self._message("thumbs", turn, value=value, user_id="u", sequence=self._sequence, occurred_at=iso(self.at))
            for turn in self.ids
        )

    def held(self, value: float) -> bool:
        """Whether Opik holds this value for each turn."""
        expected = {(trace, THUMBS): value for trace in self.ids.values()}
        expected |= {(trace, REROLL): 0.0 for trace in self.ids.values()}
        return self.rig.opik.scores([PROJECT]) == expected

    def settle(self, value: float) -> None:
        self.rig.wait(f"{value:+g} recorded and in Opik", lambda: self.rig.drained() and self.held(value))

    def _message(self, topic: Any, turn: str, **event: Any) -> Message:
        named = {"event_id": f"{turn}/{topic}/{self._sequence}", "response_id": turn}
        return Message(topic, turn.encode(), json.dumps(named | event).encode())


def land(rig: Rig, turns: Turns) -> None:
    """What is kept is applied, the late write first, and then the worker's reads are answered."""
    assert rig.opik.apply_late() > 0
    assert not turns.held(-1.0), "the late write changed nothing: this shows nothing"
    rig.opik.heal()

    def right() -> bool:
        rig.opik.apply_late()
        return turns.held(-1.0)

    rig.wait("the late write is written over", right, 90)


def test_a_write_without_an_answer_comes_after_the_user_has_changed_the_thumb(make_rig: Make) -> None:
    """The connection breaks, the write is repeated, the user flips, and then the first write is applied."""
    rig = make_rig(**SETTINGS)
    turns = Turns(rig)
    rig.worker()
    rig.wait("traces joined", rig.drained)
    rig.opik.fault(match=PUT, late=True, drop=True, times=1)
    turns.say("up")
    turns.settle(1.0)
    assert rig.opik.kept() == 1
    rig.opik.fault(match=READ, late=True)
    turns.say("down")
    turns.settle(-1.0)
    land(rig, turns)
    assert not rig.dead_letters()


def test_a_write_of_a_worker_that_was_stopped_and_killed_comes_after_the_next_workers_writes(make_rig: Make) -> None:
    """SIGSTOP past the session timeout with a write under way; another worker takes over, the user flips, SIGKILL."""
    rig = make_rig(**SETTINGS)
    turns = Turns(rig)
    first = rig.worker()
    rig.wait("traces joined", rig.drained)
    rig.opik.fault(match=PUT, late=True, times=1)
    turns.say("up")
    rig.wait("the write is under way", lambda: rig.opik.kept() == 1)
    first.pause()
    rig.opik.fault(match=READ, late=True)
    rig.worker()
    turns.settle(1.0)
    turns.say("down")
    turns.settle(-1.0)
    first.kill()
    land(rig, turns)
    assert not rig.dead_letters()
