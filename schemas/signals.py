"""User signals as declarations: everything that decodes, joins, writes, counts or replays a signal reads these.

A new signal is a `UserSignal` and an agent with its codec; `tests/third_signal` is a whole example. `declare` makes it
known to topics, coverage, conservation, metrics and dead letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from schemas.outcomes import Kind


class MergeRule(Enum):
    """How events of one turn become its signal."""

    LATEST = "latest"
    """The highest version counts, whatever the order of arrival; a value of 0 withdraws the signal."""
    ONCE = "once"
    """Once known, the signal stays; it has no value but 1."""


@dataclass(frozen=True)
class UserSignal:
    """One kind of user signal.

    `kind`: the label of metrics and conservation, and the signal's place in a stored turn. `name`: what messages call
    one of them. `topic`: without the prefix. `score` and `label`: name and source label of the feedback score;
    `legacy_name` is its bare name. `origin` and `swept_origin`: numbers that stored turns hold for a signal that came
    by a record of the topic, or by a sweep; never used again for another. `implied_by`: the kind of signal beside which
    the absence of this one is a score of 0.0 (contracts §2).
    """

    kind: str
    name: str
    topic: str
    score: str
    label: str
    rule: MergeRule
    origin: int
    swept_origin: int | None = None
    legacy_name: str = ""
    implied_by: str = ""


DECLARED: Final[dict[str, UserSignal]] = {}
"""Kind -> signal, in the order in which scores are written."""


def declare(signal: UserSignal) -> UserSignal:
    """Make a signal known. Raises ValueError where a kind, topic, score or origin is taken."""
    for other in DECLARED.values():
        origins = {other.origin, other.swept_origin} & {signal.origin, signal.swept_origin} - {None}
        if origins or signal.kind == other.kind or signal.topic == other.topic or signal.score == other.score:
            raise ValueError(f"the signal {signal.kind!r} shares its kind, topic, score or origin with {other.kind!r}")
    DECLARED[signal.kind] = signal
    return signal


def kinds() -> tuple[str, ...]:
    """Every kind of consumed record: the declared signals, traces and ramp steps."""
    return (*DECLARED, Kind.TRACE.value, Kind.RAMP_STEP.value)


THUMBS: Final = declare(
    UserSignal(
        kind=Kind.THUMBS.value,
        name="thumb",
        topic="thumbs",
        score="user_signal_thumbs",
        label="user_mobile",
        rule=MergeRule.LATEST,
        origin=1,
        swept_origin=4,
        legacy_name="thumbs",
    )
)
REROLL: Final = declare(
    UserSignal(
        kind=Kind.REROLL.value,
        name="reroll",
        topic="rerolls",
        score="user_signal_reroll",
        label="history_middleware",
        rule=MergeRule.ONCE,
        origin=2,
        swept_origin=5,
        legacy_name="reroll",
        implied_by=Kind.THUMBS.value,
    )
)
