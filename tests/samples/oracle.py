"""Says from the turns alone what a gate must be shown and what its verdict may be (contracts §3).

It imports nothing of the product and knows nothing of pools, counters or orders of arrival but the two that count: of a
trace's records the one with the later end, then the later record.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.samples.turns import BAD, GOOD, Ask, Post, Trace, Traffic, Turn

HOUR = 3_600_000
UNENDED_AFTER = HOUR
"""A turn that runs for longer counts as one that does not end; a younger one is no one's evidence yet."""
POOL = 600
LEFT_OUT, UNREADABLE = 0.05, 0.01
"""Shares of the eligible turns and of the window's records above which a sample is incomplete."""
RECORD_NOT_COME, DEAD_LETTERED, NOT_ENDED, BEYOND_POOL = "record_not_come", "dead_lettered", "not_ended", "beyond_pool"
HALVES = re.compile("[\ud800-\udfff]")
"""What is left of a character that was cut."""
PLAINLY_BAD, BAD_IN_ANY_DRAW = 0.25, 0.45
"""Shares of bad turns with which a version fails, where a gate sees all of them, and where it draws some. The judge
asks for four good ones in five."""
REASONS = frozenset((RECORD_NOT_COME, DEAD_LETTERED, NOT_ENDED, BEYOND_POOL))


@dataclass(frozen=True)
class Bounds:
    """Of a gate: how many turns it wants and needs, and its window."""

    wanted: int
    needed: int
    window: int


@dataclass
class Expected:
    """`pooled`: turn -> the trace that counts and its last answer, None where it gave none. `left_out`: turn -> reasons
    that may be given for it. `perhaps`: turns of the latter whose record may count as one that no one can read;
    `perhaps_unreadable`: such records of all versions, and those of turns that name none.
    `answers`: what the user of each eligible turn was answered in the end. `rated`, `rerolled`: turns with a standing
    signal; `withdrawn`: those whose thumb was taken back. `beyond`: eligible turns that an hour's pool has no room for;
    for a fair draw a gate may leave out more of them, of other hours."""

    pooled: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    left_out: dict[str, frozenset[str]] = field(default_factory=dict)
    perhaps: set[str] = field(default_factory=set)
    answers: dict[str, str | None] = field(default_factory=dict)
    rated: set[str] = field(default_factory=set)
    rerolled: set[str] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)
    beyond: int = 0
    unreadable: int = 0
    perhaps_unreadable: int = 0
    records: int = 0

    @property
    def bad_share(self) -> float:
        return _share(sum(is_bad(answer) for answer in self.answers.values()), len(self.answers))

    @property
    def flawless(self) -> bool:
        """Every eligible turn was answered, and well."""
        return all(answer is not None and not is_bad(answer) for answer in self.answers.values())

    @property
    def incomplete(self) -> bool:
        """However the records are counted of which it may be said that no one can read them."""
        eligible = len(self.pooled) + len(self.left_out)
        at_most = _share(len(self.left_out), eligible) > LEFT_OUT
        at_least = _share(len(self.left_out) - len(self.perhaps), eligible - len(self.perhaps)) > LEFT_OUT
        many = _share(self.unreadable + self.perhaps_unreadable, self.records) > UNREADABLE
        return (at_most and at_least) or (at_most and many) or _share(self.unreadable, self.records) > UNREADABLE

    @property
    def complete(self) -> bool:
        """However they are counted."""
        eligible = len(self.pooled) + len(self.left_out)
        unreadable = _share(self.unreadable + self.perhaps_unreadable, self.records)
        return _share(len(self.left_out), eligible) <= LEFT_OUT and unreadable <= UNREADABLE


@dataclass(frozen=True)
class Judged:
    """An item that judges were shown."""

    turn: str
    trace: str
    output: str | None


@dataclass(frozen=True)
class Told:
    """What a verdict says. A number that it does not have is None."""

    action: str
    codes: frozenset[str]
    size: int
    eligible: int | None
    pooled: int | None
    left_out: Mapping[str, int] | None
    signals: Mapping[str, tuple[int, int]] | None
    """Signal -> (eligible, sampled)."""
    judged: Sequence[Judged]


def is_bad(answer: str | None) -> bool:
    return answer is not None and answer.startswith(BAD)


def is_good(answer: str | None) -> bool:
    return answer is not None and answer.startswith(GOOD)


def expected(traffic: Traffic, ask: Ask, window: int) -> Expected:
    found = Expected()
    since = ask.at - window
    hours: Counter[int] = Counter()
    for turn in traffic.turns:
        own = [trace for trace in turn.traces if _is_asked_about(trace, ask)]
        if own:
            _place(found, turn, own, since, ask.at, hours)
    found.beyond = sum(max(count - POOL, 0) for count in hours.values())
    for turn in traffic.turns:
        for trace in turn.traces:
            posts = [post for post in trace.posts if since < post.at <= ask.at]
            found.records += len(posts)
            found.perhaps_unreadable += sum(post.fate == "too large" for post in posts)
    garbage = [one for one in traffic.garbage if since < one.at <= ask.at]
    found.unreadable = sum(not one.nameless for one in garbage)
    found.perhaps_unreadable += len(garbage) - found.unreadable
    found.records += len(garbage)
    return found


def _place(found: Expected, turn: Turn, own: Sequence[Trace], since: int, now: int, hours: Counter[int]) -> None:
    """Put a turn where it belongs: in a pool, left out for a reason, or nowhere."""
    counting = [(post.ended or 0, trace.id, post) for trace in own if (post := last_record(trace, now)) is not None]
    if counting:
        ended, trace_id, post = max(counting, key=lambda one: one[:2])
        if not since < ended <= now:
            return
        trace = next(one for one in own if one.id == trace_id)
        found.pooled[turn.id] = trace_id, answer_of(trace, post, now)
        hours[ended // HOUR] += 1
    else:
        reasons = frozenset(_reasons(turn, own, since, now))
        if not reasons:
            return
        found.left_out[turn.id] = reasons
        dead = [post.fate for trace in own for post in trace.posts if post.fate != "accepted"]
        if dead and set(dead) == {"too large"}:
            found.perhaps.add(turn.id)
    found.answers[turn.id] = really_said(own)
    thumb = max(turn.thumbs, key=lambda one: one.at, default=None)
    if thumb is not None:
        (found.rated if thumb.value else found.withdrawn).add(turn.id)
    if turn.rerolls:
        found.rerolled.add(turn.id)


def _is_asked_about(trace: Trace, ask: Ask) -> bool:
    ours = trace.version == ask.version if ask.scope == "version" else trace.environment == "production"
    return ours and ask.vertical in (None, trace.vertical)


def last_record(trace: Trace, now: int) -> Post | None:
    """The accepted record of a trace's end that counts: the later end, then the later record."""
    ended = [post for post in trace.posts if post.fate == "accepted" and post.ended is not None and post.at <= now]
    return max(ended, key=lambda post: (post.ended or 0, post.at), default=None)


def answer_of(trace: Trace, post: Post, now: int) -> str | None:
    """The record's answer; Opik's where the record leaves it out."""
    if post.texts:
        return post.output
    copies = [copy for copy in trace.copies if copy.at <= now]
    return max(copies, key=lambda copy: copy.at).output if copies else None


def really_said(own: Iterable[Trace]) -> str | None:
    """What the trace that ended last said in the end, however it is known."""
    said: list[tuple[int, int, str | None]] = []
    for trace in own:
        said += [(post.ended, post.at, post.output) for post in trace.posts if post.ended is not None and post.texts]
        said += [(copy.ended, copy.at, copy.output) for copy in trace.copies if copy.ended is not None]
        if not any(post.texts for post in trace.posts) and not trace.copies:
            said += [(post.ended, post.at, None) for post in trace.posts if post.ended is not None]
    return max(said, key=lambda one: one[:2])[2] if said else None


def _reasons(turn: Turn, own: Sequence[Trace], since: int, now: int) -> Iterator[str]:
    """Why a turn without an accepted record of its end may be said to be left out; nothing where it is not eligible."""
    known_from_opik = bool(turn.rerolls or any(thumb.value for thumb in turn.thumbs))
    for trace in own:
        dead = [post for post in trace.posts if post.fate != "accepted" and post.at <= now]
        if any(post.ended is not None and since < post.ended <= now for post in dead):
            yield DEAD_LETTERED
        heard = any(post.fate == "accepted" and post.at <= now for post in trace.posts)
        copies = [copy for copy in trace.copies if copy.at <= now] if known_from_opik else []
        if any(copy.ended is not None and since < copy.ended <= now for copy in copies):
            yield RECORD_NOT_COME
        running = not any(copy.ended is not None for copy in copies)
        if (heard or (copies and running)) and since < trace.started <= now - UNENDED_AFTER:
            yield NOT_ENDED


def differences(must: Expected, told: Told, bounds: Bounds, stranger: bool = False) -> Iterator[str]:
    """What of a verdict is not as it must be, one line each. Of a `stranger`, a version beyond the bound on new names,
    only a pass of a bad one is wrong."""
    proceeds = told.action == "proceed"
    if must.bad_share >= (PLAINLY_BAD if bounds.wanted >= len(must.pooled) else BAD_IN_ANY_DRAW) and proceeds:
        yield f"a bad version passes: {must.bad_share:.0%} of {len(must.answers)} turns are bad, {_shown(told)}"
    if stranger:
        return
    if must.incomplete and (proceeds or "sample_incomplete" not in told.codes):
        out = len(must.left_out)
        yield f"{out} left out of {out + len(must.pooled)} is no sample_incomplete: {told.action}, {sorted(told.codes)}"
    enough = len(must.pooled) >= bounds.needed
    if must.flawless and must.complete and enough and not proceeds:
        yield f"a good version fails: {sorted(told.codes)}, {_shown(told)}"
    if must.complete and "sample_incomplete" in told.codes:
        yield f"a complete sample is called incomplete: {_shown(told)}"
    yield from _of_items(must, told, bounds)
    yield from _of_sums(must, told)
    yield from _of_signals(must, told)


def _of_items(must: Expected, told: Told, bounds: Bounds) -> Iterator[str]:
    """As many turns are drawn as there are, up to what is wanted; each once, by its last answer. A pool is no smaller
    than what is wanted."""
    size = min(bounds.wanted, len(must.pooled))
    if told.size != size:
        yield f"the sample's size is {told.size}, must be {size} of {len(must.pooled)} turns"
    if len(told.judged) != told.size:
        yield f"{len(told.judged)} items were judged, and the sample's size is {told.size}"
    twice = [turn for turn, times in Counter(one.turn for one in told.judged).items() if times > 1]
    strange = [one for one in told.judged if one.turn not in must.pooled]
    wrongly = [
        one
        for one in told.judged
        if one.turn in must.pooled
        and must.pooled[one.turn] != (one.trace, _whole(one.output, must.pooled[one.turn][1]))
    ]
    if twice:
        yield f"judged more than once: {len(twice)} turns, such as {twice[0]}"
    if strange:
        yield f"judged, and not the version's in the window: {len(strange)} turns, such as {strange[0].turn}"
    if wrongly:
        one, (trace, output) = wrongly[0], must.pooled[wrongly[0].turn]
        example = f"{one.turn} by {one.trace} {one.output!r}, must be {trace} {output!r}"
        yield f"judged by another than the last answer: {len(wrongly)} turns, such as {example}"


def _of_sums(must: Expected, told: Told) -> Iterator[str]:
    if told.eligible is None or told.pooled is None or told.left_out is None:
        yield "the verdict says nothing of eligible, pooled and left out"
        return
    if told.eligible != told.pooled + sum(told.left_out.values()):
        yield f"eligible {told.eligible} is not pooled {told.pooled} and left out {dict(told.left_out)}"
    if strange := told.left_out.keys() - REASONS:
        yield f"left out for reasons that there are not: {sorted(strange)}"
    most = len(must.pooled) + len(must.left_out)
    if not most - len(must.perhaps) <= told.eligible <= most:
        yield f"eligible is {told.eligible}, must be {most}"
    beyond = told.left_out.get(BEYOND_POOL, 0)
    if told.pooled + beyond != len(must.pooled) or beyond < must.beyond or (beyond and not must.beyond):
        yield f"pooled is {told.pooled} and {beyond} beyond, must be {len(must.pooled)} with {must.beyond} beyond"
    certain = Counter(one for turn, reasons in must.left_out.items() for one in reasons if len(reasons) == 1)
    possible = Counter(one for reasons in must.left_out.values() for one in reasons)
    for reason in sorted(REASONS - {BEYOND_POOL}):
        least = certain[reason] - (len(must.perhaps) if reason == DEAD_LETTERED else 0)
        said = told.left_out.get(reason, 0)
        if not max(least, 0) <= said <= possible[reason]:
            yield f"{reason} is {said}, must be from {max(least, 0)} to {possible[reason]}"


def _of_signals(must: Expected, told: Told) -> Iterator[str]:
    """A withdrawn thumb may count as a rating or not; those of turns that are left out may count or not."""
    if told.signals is None:
        yield "the verdict says nothing of its signals"
        return
    judged = {one.turn for one in told.judged}
    for name, turns, more in (("rated", must.rated, must.withdrawn), ("rerolled", must.rerolled, set[str]())):
        eligible, sampled = told.signals.get(name, (-1, -1))
        if not len(turns & must.pooled.keys()) <= eligible <= len(turns | more):
            yield f"{name}: {eligible} eligible, must be {len(turns & must.pooled.keys())} to {len(turns | more)}"
        if not len(turns & judged) <= sampled <= len((turns | more) & judged):
            yield f"{name}: {sampled} sampled, must be {len(turns & judged)} to {len((turns | more) & judged)}"


def _whole(shown: str | None, answer: str | None) -> str | None:
    """The answer itself where it is shown but for halves of characters, which no text has to keep."""
    return answer if answer and shown == HALVES.sub("\ufffd", answer) else shown


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _shown(told: Told) -> str:
    good, bad = (sum(map(is_, (one.output for one in told.judged))) for is_ in (is_good, is_bad))
    return f"judged {good} good, {bad} bad, {len(told.judged) - good - bad} without an answer"
