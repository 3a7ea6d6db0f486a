"""Decides whether judges score against users, by closed weeks and one turn a user (PF-9 FR-10, §5.4). Pure.

Looking every day at a rolling week calls most uncorrelated judges within months. So weeks are disjoint, and one is
looked at once it is closed: ISO weeks in UTC, after the time in which a signal may still come. Of a user's turns with a
signal one takes part, picked by a hash of its id before anybody asks which judge scored it. Live judging scores what
was voted down more often than what was not: a judged turn stands for all picked ones of its kind, which is one over the
chance that its kind was judged, and Kish's number of pairs stands in Fisher's interval. P-values are Holm's over judges
and verticals of a week.

A judge is told of after two closed weeks in a row, by thumbs alone: rerolls are a dimension of their own (Decision 12).
Users are not the people of FR-10's reference set, so no one is suspended.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from evalcore.inversion.check import ALPHA, Standing, standing
from evalcore.stats.correlation import correlation
from evalcore.stats.multiple_tests import holm

IN_A_ROW = 2
"""Closed weeks after which a judge that scores against users is told of."""
_DAY_MS = 86_400_000


class UserSignal(StrEnum):
    """What users say of a turn; each is a family of its own."""

    THUMBS = "thumbs"
    REROLL = "reroll"


@dataclass(frozen=True, order=True)
class Week:
    """An ISO week in UTC, as `2026-W47`."""

    year: int
    number: int

    @classmethod
    def parse(cls, text: str) -> Week:
        """Raises ValueError for what is no week of a calendar."""
        year, _, number = text.partition("-W")
        if not (year.isdecimal() and number.isdecimal() and len(year) == 4):
            raise ValueError(f"{text[:40]!r} is no week; one is 2026-W47")
        date.fromisocalendar(int(year), int(number), 1)
        return cls(int(year), int(number))

    @classmethod
    def of(cls, ms: int) -> Week:
        year, number, _ = datetime.fromtimestamp(ms / 1000, UTC).isocalendar()
        return cls(year, number)

    @property
    def since_ms(self) -> int:
        monday = datetime.combine(date.fromisocalendar(self.year, self.number, 1), datetime.min.time(), UTC)
        return int(monday.timestamp() * 1000)

    @property
    def until_ms(self) -> int:
        """The first moment that no longer belongs to it."""
        return self.since_ms + 7 * _DAY_MS

    @property
    def before(self) -> Week:
        return Week.of(self.since_ms - _DAY_MS)

    @property
    def after(self) -> Week:
        return Week.of(self.until_ms)

    def closes(self, late: timedelta) -> datetime:
        """From when no signal of its turns can come any more, where signals may be `late` by so much."""
        return datetime.fromtimestamp(self.until_ms / 1000, UTC) + late

    def __str__(self) -> str:
        return f"{self.year:04d}-W{self.number:02d}"


def latest_closed(now: datetime, late: timedelta) -> Week:
    """Returns the last week that is closed."""
    return Week.of(int((now - late).timestamp() * 1000)).before


@dataclass(frozen=True)
class UserTurn:
    """A turn that a user reacted to. `at_ms`: when its trace began. `signals`: higher is better. `judges`: their
    scores."""

    response_id: str
    user_id: str
    vertical: str
    at_ms: int
    signals: Mapping[UserSignal, float]
    judges: Mapping[str, float]


@dataclass(frozen=True)
class UserFinding:
    """What a week's users say of a judge in a vertical. `weeks_in_a_row`: closed weeks up to this one in which it
    scored against them, as far as they are known."""

    judge: str
    vertical: str
    week: Week
    signal: UserSignal
    turns: int
    standing: Standing
    adjusted_p: float | None
    weeks_in_a_row: int = 0

    @property
    def against(self) -> bool | None:
        """Tells whether it scored against users in this week; None where no one can tell."""
        return self.adjusted_p <= ALPHA if self.adjusted_p is not None else None

    @property
    def pages(self) -> bool:
        return self.signal is UserSignal.THUMBS and self.weeks_in_a_row >= IN_A_ROW


class Picks:
    """One turn a user of each vertical: of this week, with this signal, whoever judged it. Holds no more than those,
    however many turns there are; one that comes twice is one."""

    def __init__(self, week: Week, signal: UserSignal) -> None:
        self._week, self._signal = week, signal
        self._best: dict[tuple[str, str], tuple[bytes, UserTurn]] = {}

    def add(self, turns: Iterable[UserTurn]) -> None:
        week, best = self._week, self._best
        for turn in turns:
            if not (turn.user_id and self._signal in turn.signals and week.since_ms <= turn.at_ms < week.until_ms):
                continue
            this = hashlib.sha256(f"{week} {turn.response_id}".encode(errors="surrogatepass")).digest()
            key = (turn.vertical, turn.user_id)
            if key not in best or this < best[key][0]:
                best[key] = this, turn

    def by_vertical(self) -> dict[str, list[UserTurn]]:
        out: dict[str, list[UserTurn]] = {}
        for (vertical, _), (_, turn) in sorted(self._best.items()):
            out.setdefault(vertical, []).append(turn)
        return out


def picked(turns: Iterable[UserTurn], week: Week, signal: UserSignal) -> dict[str, list[UserTurn]]:
    """Returns the picks of these turns by their vertical."""
    picks = Picks(week, signal)
    picks.add(turns)
    return picks.by_vertical()


def check_week(turns: Iterable[UserTurn], week: Week, signal: UserSignal) -> list[UserFinding]:
    """Returns what a closed week's users say of each judge in each vertical; `weeks_in_a_row` knows of this week."""
    return check_picked(picked(turns, week, signal), week, signal)


def check_picked(chosen: Mapping[str, Sequence[UserTurn]], week: Week, signal: UserSignal) -> list[UserFinding]:
    """Returns the same of picks by their vertical."""
    found: list[tuple[str, str, int, Standing]] = []
    for vertical, turns in sorted(chosen.items()):
        for judge in sorted({judge for turn in turns for judge in turn.judges}):
            found.append((judge, vertical, *_held(judge, turns, signal)))
    told = [at for at, (*_, one) in enumerate(found) if one.inverted is not None]
    adjusted = dict(zip(told, holm([found[at][3].found.below_zero_p or 0.0 for at in told]), strict=True))
    out = []
    for at, (judge, vertical, pairs, one) in enumerate(found):
        p = adjusted.get(at)
        row = int(p is not None and p <= ALPHA)
        out.append(UserFinding(judge, vertical, week, signal, pairs, one, p, row))
    return out


def in_a_row(found: Iterable[UserFinding], before: Iterable[UserFinding]) -> list[UserFinding]:
    """Returns a week's findings that go on counting where the week before ended. Those of any other week count for
    nothing."""
    return counted_on(found, {(one.judge, one.vertical, one.signal, one.week): one.weeks_in_a_row for one in before})


def counted_on(
    found: Iterable[UserFinding], known: Mapping[tuple[str, str, UserSignal, Week], int]
) -> list[UserFinding]:
    """Returns the same; `known` has weeks in a row by judge, vertical, signal and week."""
    out = []
    for one in found:
        row = 1 + known.get((one.judge, one.vertical, one.signal, one.week.before), 0) if one.against else 0
        out.append(UserFinding(**{**vars(one), "weeks_in_a_row": row}))
    return out


def _held(judge: str, chosen: Sequence[UserTurn], signal: UserSignal) -> tuple[int, Standing]:
    import numpy as np

    judged = [turn for turn in chosen if judge in turn.judges]
    of_kind = Counter(turn.signals[signal] for turn in chosen)
    judged_of_kind = Counter(turn.signals[signal] for turn in judged)
    users = np.array([turn.signals[signal] for turn in judged], dtype=np.float64)
    scores = np.array([turn.judges[judge] for turn in judged], dtype=np.float64)
    weights = np.array([of_kind[value] / judged_of_kind[value] for value in users.tolist()], dtype=np.float64)
    return len(judged), standing(judge, correlation(scores, users, weights))
