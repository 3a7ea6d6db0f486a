"""Finds chains of rerolled answers among a window's turns, by the join's own rule and the rerolls that it scored (PF-9
§5.4, FR-12). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.join.sessions import is_reroll
from agents.join.turn import Session
from schemas.answers import TurnView
from schemas.signals import REROLL
from streams.opik.traces import SLACK_MS, began, told


@dataclass(frozen=True)
class Answered:
    """A turn of a session. `began`: when its trace began by its id, by which pages are ordered."""

    view: TurnView
    turn: Session
    began: int

    @property
    def rerolled(self) -> bool:
        return self.view.feedback_scores.get(REROLL.score, 0.0) > 0


@dataclass(frozen=True)
class Chain:
    """Answers that a user had one after another, in order of start. `cut`: an earlier or a later one lies, or may yet
    come to lie, outside the window, so that no one can tell which is the last."""

    answers: tuple[TurnView, ...]
    cut: bool


class Chains:
    """Takes the pages of a window that begins at `reach_ms` and gives each chain once no later page can add to it.

    Keeps the turns of the last hour and reroll window that it read, and chains that reach into it; of what it gave, or
    what belongs to no chain, nothing.
    """

    def __init__(self, project: str, *, since_ms: int, until_ms: int, window_ms: int) -> None:
        """`window_ms`: how long after an answer the vertical's users reroll it."""
        self._project, self._since, self._until, self._window = project, since_ms, until_ms, window_ms
        self._sessions: dict[str, list[Answered]] = {}

    @property
    def reach_ms(self) -> int:
        """Where to begin to read, so that a chain that began before the window shows: an answer takes under an hour."""
        return max(self._since - self._window - SLACK_MS, 0)

    def add(self, page: Sequence[TurnView]) -> list[Chain]:
        """The chains that are whole after this page, newest first. Pages come newest first."""
        for view in page:
            facts = told(view.trace, self._project)
            if facts is not None and facts.session:
                turn = Session(facts.said, facts.started, facts.ended, facts.response_id, self._window)
                self._sessions.setdefault(facts.session, []).append(Answered(view, turn, began(view.trace)))
        return self._whole(min(began(view.trace) for view in page) + self._window + SLACK_MS)

    def rest(self) -> list[Chain]:
        """The chains that are left behind the last page."""
        return self._whole(0)

    def _whole(self, since_ms: int) -> list[Chain]:
        """Take out the chains all of whose answers began since then."""
        found = []
        for session, turns in list(self._sessions.items()):
            kept = []
            for answers in chained(turns):
                if min(one.began for one in answers) < since_ms:
                    kept += answers
                elif len(answers) > 1 or answers[0].rerolled:
                    found.append(answers)
            if kept:
                self._sessions[session] = kept
            else:
                del self._sessions[session]
        found.sort(key=lambda answers: answers[-1].began, reverse=True)
        # Those that ended before the window are none of its.
        return [
            Chain(tuple(one.view for one in answers), self._cut(answers))
            for answers in found
            if answers[-1].began >= self._since
        ]

    def _cut(self, answers: Sequence[Answered]) -> bool:
        last = answers[-1]
        return (
            min(one.began for one in answers) < self._since
            or last.rerolled
            or last.turn.ended + self._window >= self._until
        )


def chained(turns: Sequence[Answered]) -> Iterator[list[Answered]]:
    """The turns of one session by chain, each in order of start; a turn that was not rerolled is a chain of its own.

    An answer's next is the first one to the same input that the join and the sweep call a reroll of it; where there is
    none and the answer has the reroll's score, the turn after it, if that began in time.
    """
    ordered = sorted(turns, key=lambda one: (one.turn.started, one.turn.response_id))
    alike: dict[bytes, list[Answered]] = {}
    lasts: dict[str, str] = {}
    following: Answered | None = None
    for one in reversed(ordered):
        same = alike.setdefault(one.turn.said, [])
        after = next((later for later in reversed(same) if is_reroll(one.turn, later.turn)), None)
        if after is None and one.rerolled and following is not None and is_reroll(one.turn, following.turn):
            after = following
        lasts[one.turn.response_id] = lasts[after.turn.response_id] if after else one.turn.response_id
        if one.turn.said:
            same.append(one)
        following = one
    by_last: dict[str, list[Answered]] = {}
    for one in ordered:
        by_last.setdefault(lasts[one.turn.response_id], []).append(one)
    yield from by_last.values()
