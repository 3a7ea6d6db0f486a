"""Makes events of what a sweep finds, in the form that producers send, so that the same codecs read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from agents.codec import TraceFacts
from agents.dynamodb import created, scalar, thumb_value
from agents.join.sessions import is_reroll
from agents.join.turn import Session
from agents.policy import Attributes, Policy
from schemas.dead_letters import MadeRecord

THUMB_VALUES = {1: "up", -1: "down", 0: None}


class DerivedReroll(NamedTuple):
    """A reroll: the turn `before` it, and the earliest later turn with the same input within the window."""

    session_id: str
    before: Session
    after: Session


class Sessions:
    """Turns by session, in as few bytes as possible: those of the whole span are held at once."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._turns: dict[str, dict[str, Session]] = {}
        self._verticals: dict[str, str] = {}

    def add(self, page: Iterable[TraceFacts]) -> None:
        for facts in page:
            if facts.session and facts.said:
                window = self._policy.window_of(facts.vertical)
                turn = Session(facts.said, facts.started, facts.ended, facts.response_id, window)
                turns = self._turns.setdefault(facts.session, {})
                if facts.ended >= turns.get(facts.response_id, turn).ended:
                    turns[facts.response_id] = turn
                    self._verticals[facts.response_id] = facts.vertical

    def vertical(self, response_id: str) -> str:
        return self._verticals.get(response_id, "")

    def rerolls(self) -> Iterator[DerivedReroll]:
        """The rerolls among the turns, by session."""
        for session_id, by_id in self._turns.items():
            alike: dict[bytes, list[Session]] = {}
            for turn in by_id.values():
                alike.setdefault(turn.said, []).append(turn)
            for turns in alike.values():
                turns.sort(key=lambda turn: (turn.started, turn.response_id))
                for at, before in enumerate(turns):
                    after = next((turn for turn in turns[at + 1 :] if is_reroll(before, turn)), None)
                    if after is not None:
                        yield DerivedReroll(session_id, before, after)


def thumb_event(item: Mapping[str, Any], read_at_ms: int, names: Attributes, topic: str) -> MadeRecord:
    """A plain thumb that says when the table was read. Raises ValueError, which names what the item lacks."""
    image = dict(item)
    message_id, response_id = scalar(image, names.message_id), scalar(image, names.response_id)
    if not message_id or not response_id:
        missing = names.message_id if not message_id else names.response_id
        raise ValueError(f"attribute {missing} is missing or no usable string")
    value = THUMB_VALUES[thumb_value(image, names.thumbs)]
    event = {
        "event_id": f"sweep:{message_id[:400]}:{value or 'none'}:{read_at_ms}",
        "response_id": response_id,
        "user_id": scalar(image, names.user_id),
        "value": value,
        "occurred_at": created(image, names.created_at),
        "observed_at": read_at_ms / 1000,
        "vertical": scalar(image, names.vertical),
    }
    return MadeRecord(topic, response_id.encode(), orjson.dumps(event), timestamp=read_at_ms)


def reroll_event(reroll: DerivedReroll, vertical: str, topic: str) -> MadeRecord:
    """A reroll event as the history middleware sends it, timed from the previous turn's end (PF-9 §5.4)."""
    before, after = reroll.before, reroll.after
    event = {
        "event_id": f"sweep:{before.response_id[:240]}:{after.response_id[:240]}",
        "response_id": before.response_id,
        "new_response_id": after.response_id,
        "session_id": reroll.session_id,
        "input_hash": before.said.hex(),
        "elapsed_seconds": (after.started - before.ended) / 1000,
        "occurred_at": datetime.fromtimestamp(after.started / 1000, UTC).isoformat(),
        "vertical": vertical or None,
    }
    return MadeRecord(topic, before.response_id.encode(), orjson.dumps(event), timestamp=after.started)
