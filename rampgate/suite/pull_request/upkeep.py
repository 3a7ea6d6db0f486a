"""Keeps one comment of a suite on a pull request, of its newest run, whoever else writes at the same time.

GitHub has no write that depends on what was read. So after each write it is read again, until one comment stands there
that is no older than this run's. Whoever sees two puts the newest text into the first and takes the others away; each
may do that, and doing it twice changes nothing. GitHub keeps the texts that were written over: whoever wrote over a
newer one, which came between its look and its write, finds it there and puts it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from agents.ports import Unavailable
from rampgate.suite.pull_request.comments import Comment, Conversation
from rampgate.suite.pull_request.marks import Mark, mark_of

ROUNDS: Final = 8


class PullRequestComments(Protocol):
    """See `rampgate.suite.pull_request.comments.Comments`."""

    async def read(self, repository: str, number: int) -> Conversation: ...
    async def texts(self, comment: str) -> list[str]: ...
    async def add(self, pull: str, body: str) -> Comment: ...
    async def edit(self, comment: str, body: str) -> None: ...
    async def delete(self, comment: str) -> None: ...


@dataclass(frozen=True)
class Kept:
    """What became of a run's comment: `left` where a newer run's, or the pull request's newer commit, goes before."""

    done: Literal["made", "edited", "left"]
    url: str | None = None
    why: str | None = None


async def keep_comment(comments: PullRequestComments, repository: str, number: int, mark: Mark, body: str) -> Kept:
    """Raises Unavailable, Unauthorized and MayNotWrite."""
    made: Comment | None = None
    overwritten: list[tuple[Mark, str]] = []
    wrote: Mark | None = None
    for _ in range(ROUNDS):
        found = await comments.read(repository, number)
        own = [(comment, of) for comment in found.own if (of := mark_of(comment.body, mark.suite)) is not None]
        if made is not None and not own:
            own = [(made, mark)]  # what was just made is not in each copy of GitHub's data at once
        if not own:
            if mark.commit != found.head:
                return Kept("left", None, _outdated(mark, found.head))
            made = await comments.add(found.id, body)
            continue
        told = [*((of, comment.body) for comment, of in own), *overwritten]
        newest, text = max(told, key=lambda one: one[0].rank(found.head))
        if mark.rank(found.head) >= newest.rank(found.head) and mark.commit == found.head:
            newest, text = mark, body
        first, of = own[0]
        # The host may store a text in a form of its own: what bears the mark of what was written is that.
        if len(own) == 1 and (first.body.strip() == text.strip() or (wrote == newest == of)):
            if text is not body:
                why = _outdated(mark, found.head) if mark.commit != found.head else "a newer run has written"
                return Kept("left", first.url, why)
            return Kept("made" if made is not None and made.id == first.id else "edited", first.url)
        if first.body.strip() != text.strip():
            await comments.edit(first.id, text)
            wrote = newest
            texts = await comments.texts(first.id)
            overwritten = [(one, words) for words in texts if (one := mark_of(words, mark.suite)) is not None]
        for other, _ in own[1:]:
            await comments.delete(other.id)
    raise Unavailable("GitHub: others write comments of this suite all the time")


def _outdated(mark: Mark, head: str) -> str:
    return f"the pull request is at {head[:12]} by now, and the run is of {mark.commit[:12]}"
