"""Seeded traffic of a rollout in the orders in which tracing, users, feeds and replays really bring it.

Each version has an order of its own: its bad turns, or a part of a good version's turns, come in it. What else is said
of such a turn on the way is the opposite of its last answer, so that a wrong record makes a wrong verdict. None of the
product is imported.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Literal

from tests.samples.turns import (
    BAD,
    GOOD,
    LONGEST_CATEGORY,
    Ask,
    Copy,
    Garbage,
    Happening,
    Post,
    Thumb,
    Trace,
    Traffic,
    Turn,
)

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
EARLY, MAIN, ASKED = 4 * HOUR + 30 * MINUTE, 6 * HOUR + 55 * MINUTE, 8 * HOUR + 30 * MINUTE
"""Since the beginning: when a part of each version's turns ends, when most do, and when gates are asked for."""
SPAN = 10 * MINUTE
GAPS = (0, 2 * SECOND, 12 * SECOND, 60 * SECOND)
"""How much later than the signal a trace's record comes."""
HAPPENINGS = (
    "nothing",
    "state lost, adopted, read again",
    "state lost, read again, adopted",
    "state lost before the traffic ends",
    "restart and new names",
    "workers change places",
    "records come again",
    "everything is posted again",
)
NEW_NAMES = "restart and new names"


class Dice(random.Random):
    def uuid7(self, ms: int) -> str:
        bits = (ms & (1 << 48) - 1) << 80 | 7 << 76 | self.getrandbits(12) << 64 | 2 << 62 | self.getrandbits(62)
        digits = f"{bits:032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def gap(self) -> int:
        return self.choice(GAPS)


class Made:
    """A turn in the making: `answer` is what its user got in the end, `other` the opposite."""

    def __init__(self, dice: Dice, turn: Turn, version: str, ended: int, environment: str, vertical: str, bad: bool):
        self.dice, self.turn, self.ended = dice, turn, ended
        number = len(turn.traces)
        self.answer, self.other = (BAD, GOOD) if bad else (GOOD, BAD)
        self.answer, self.other = f"{self.answer} {turn.id} {number}", f"{self.other} {turn.id} {number}"
        started = ended - dice.randint(300, 9_000)
        self.trace = Trace(dice.uuid7(started), version, started, environment, vertical)
        turn.traces.append(self.trace)

    def in_opik(self, ends: bool = True, output: str | None = None, late: int = 0) -> None:
        """As Opik's SDK posts it: at its start, and again at its end."""
        self.trace.copies.append(Copy(self.trace.started + 100, None))
        if ends:
            at = self.ended + self.dice.randint(300, 1_500) + late
            self.trace.copies.append(Copy(at, self.ended, self.answer if output is None else output))

    def post(self, late: int = 0, output: str | None = None, ended: int | None = None, **more: object) -> None:
        """Its record, `late` after its end."""
        ended = self.ended if ended is None else ended
        at = max(ended, self.ended) + 200 + late
        taken = {post.at for post in self.trace.posts}
        while at in taken:
            at += 1
        self.trace.posts.append(Post(at, ended, output, **more))  # type: ignore[arg-type]

    def start(self, output: str | None = None) -> None:
        """The record of its start."""
        self.trace.posts.append(Post(self.trace.started + 50, None, output))

    def thumb(self, value: Literal[1, -1, 0], after: int = 0) -> None:
        self.turn.thumbs.append(Thumb(self.ended + 100 + after, value))

    def reroll(self, after: int = 0) -> None:
        self.turn.rerolls.append(self.ended + 100 + after)


Order = Callable[[Made], None]


def plain(made: Made) -> None:
    made.in_opik()
    made.post(output=made.answer)


def started_and_ended(made: Made) -> None:
    made.in_opik()
    made.start(made.dice.choice((None, made.other)))
    made.post(output=made.answer)


def named_at_its_end(made: Made) -> None:
    """Tracing learns of agent and version while the turn runs."""
    made.in_opik()
    made.trace.posts.append(Post(made.trace.started + 50, None, made.other, named=False))
    made.post(output=made.answer)


def same_end_again(made: Made) -> None:
    made.in_opik()
    made.post(output=made.other)
    made.post(made.dice.choice((5, 2_000, 90_000)), output=made.answer)


def null_first(made: Made) -> None:
    made.in_opik()
    made.post(output=None)
    made.post(made.dice.choice((5, 2_000, 90_000)), output=made.answer)


def in_one_millisecond(made: Made) -> None:
    """The end is the start, as clocks see it."""
    made.trace.started = made.ended
    made.in_opik()
    made.start(made.other)
    made.trace.posts[0] = Post(made.ended, None, made.other)
    made.post(output=made.answer)


def shadow_came_first(made: Made) -> None:
    """Another version was run on the same turn, ended later and was written first."""
    made.in_opik()
    shadow = Made(made.dice, made.turn, "shadowed", made.ended + 1_500, "shadow", made.trace.vertical, bad=False)
    shadow.answer = made.other
    shadow.post(output=made.other)
    made.post(made.dice.choice((4_000, 40_000)), output=made.answer)


def several_traces(made: Made) -> None:
    """The agent began again once or twice; the last of its traces is what the user saw."""
    last = made.trace
    for number in range(made.dice.choice((1, 1, 2))):
        earlier = Made(
            made.dice,
            made.turn,
            last.version,
            made.ended - 12_000 * (number + 1),
            last.environment,
            last.vertical,
            False,
        )
        earlier.answer = made.other
        earlier.in_opik()
        earlier.post(made.dice.choice((0, 30_000)), output=made.other)
    made.in_opik()
    made.post(output=made.answer)


def posted_often(made: Made) -> None:
    """By a producer that repeats itself, a stale null among them."""
    made.in_opik()
    times = made.dice.choice((3, 5))
    stale = made.dice.randrange(times)
    for number in range(times):
        made.post(number * 700, output=None if number == stale and number < times - 1 else made.answer)


def older_record_again(made: Made) -> None:
    """A retry brings what was true before the end."""
    made.in_opik()
    made.start(made.other)
    made.post(output=made.other, ended=made.ended - 250)
    made.post(1_000, output=made.answer)
    made.post(9_000, output=made.other, ended=made.ended - 250)
    made.trace.posts.append(Post(made.ended + 15_000, None, made.other))


def thumb_before_record(made: Made) -> None:
    made.in_opik(late=made.dice.choice((0, 0, 4_000)))
    made.thumb(-1 if made.answer.startswith(BAD) else 1)
    made.post(made.dice.gap() + 50, output=made.answer)


def start_thumb_end(made: Made) -> None:
    made.start(made.other)
    thumb_before_record(made)


def reroll_before_record(made: Made) -> None:
    made.in_opik()
    made.reroll()
    made.post(made.dice.gap() + 50, output=made.answer)


def withdrawn_before_record(made: Made) -> None:
    made.in_opik()
    made.thumb(-1)
    made.thumb(0, made.dice.choice((400, 3_000, 20_000)))
    made.post(made.dice.gap() + 50, output=made.answer)


def very_late(made: Made) -> None:
    """After the wait for a missing trace is over."""
    made.in_opik()
    made.thumb(-1 if made.answer.startswith(BAD) else 1)
    made.post(20 * MINUTE, output=made.answer)


def texts_in_opik(made: Made) -> None:
    made.in_opik()
    made.post(texts=False)


def no_output_anywhere(made: Made) -> None:
    made.in_opik(output="")
    made.trace.copies = [Copy(copy.at, copy.ended, None) for copy in made.trace.copies]
    made.post(texts=made.dice.random() < 0.5)


def cut_emoji(made: Made) -> None:
    """A text that was cut in the middle of an emoji."""
    made.answer += " \ud83d"
    made.in_opik()
    made.post(output=made.answer)


def record_not_come(made: Made) -> None:
    made.in_opik()
    made.thumb(-1 if made.answer.startswith(BAD) else 1, after=2_500)


def never_ended(made: Made) -> None:
    made.in_opik(ends=False)
    made.start(made.answer)
    if made.dice.random() < 0.5:
        made.thumb(-1 if made.answer.startswith(BAD) else 1)


def long_category(made: Made) -> None:
    assert LONGEST_CATEGORY == 128
    made.in_opik()
    made.post(output=made.answer, fate="long category")


def too_large(made: Made) -> None:
    made.in_opik()
    made.post(output=made.answer, fate="too large")


POOLED: tuple[Order, ...] = (
    plain, started_and_ended, named_at_its_end, same_end_again, null_first, in_one_millisecond,
    shadow_came_first, several_traces,
    posted_often, older_record_again, thumb_before_record, start_thumb_end, reroll_before_record,
    withdrawn_before_record, very_late, texts_in_opik, cut_emoji,
)  # fmt: skip
"""Orders after which a turn is in the pool, by its last record."""
LEFT_OUT: tuple[Order, ...] = (record_not_come, never_ended, long_category, too_large)
ORDERS = (*POOLED, no_output_anywhere, *LEFT_OUT)


def traffic(seed: int, start: int, orders: Sequence[Order], happening: str, turns: int = 0) -> Traffic:
    """One version for each order, every second one bad. `start`: when it begins (ms). `turns` of each, 0 for some
    forty to eighty."""
    dice, made = Dice(f"{seed}"), Traffic()
    for number, order in enumerate(orders):
        bad = (seed + number) % 2 == 0
        version = f"v{number}-{order.__name__}-{'bad' if bad else 'good'}"
        made.orders[version] = order.__name__
        _version(dice, made, start, version, order, bad, turns or dice.randint(44, 84))
    made.turns.sort(key=lambda turn: turn.traces[0].started)
    many = len(made.turns) // 8 if dice.random() < 0.12 else dice.choice((0, 1))
    made.garbage = [_garbage(dice, start + MAIN + dice.randint(0, SPAN), number) for number in range(many)]
    _befall(dice, made, start, happening)
    if happening == NEW_NAMES:
        _strangers(dice, made, start)
    for version in (*made.orders, *sorted(made.strangers)):
        for _ in range(2):
            vertical = dice.choice((None, "shop", "shop", "travel"))
            milestone = dice.choice(("pre_ramp", "pre_full"))
            scope = "agent" if dice.random() < 0.1 else "version"
            made.asks.append(Ask(start + ASKED, version, milestone, vertical, scope))  # type: ignore[arg-type]
    return made


def _version(dice: Dice, made: Traffic, start: int, version: str, order: Order, bad: bool, turns: int) -> None:
    """A version that is bad has half of its turns bad, and just those come in the order; a good one has a third of its
    turns come in it, and of those that are left out now many, now few. A few turns from before every window say the
    opposite."""
    few = order in LEFT_OUT or order is no_output_anywhere
    share = 0.5 if bad else dice.choice((0.02, 0.33)) if few else 0.4
    environment = dice.choice(("production", "production", "shadow", "canary"))
    for number in range(turns + 6):
        old = number >= turns
        phase = 0 if old else EARLY if dice.random() < 0.15 else MAIN
        in_order = not old and dice.random() < share
        turn = Turn(f"{version}/{number}")
        made.turns.append(turn)
        ended = start + phase + 20_000 + dice.randint(0, SPAN)
        vertical = "travel" if dice.random() < 0.12 else "shop"
        turn_bad = (not bad) if old else (bad and in_order)
        one = Made(dice, turn, version, ended, environment, vertical, turn_bad)
        (order if in_order else dice.choice((plain, plain, started_and_ended)))(one)
        if not turn.thumbs and not turn.rerolls and (turn_bad if bad else dice.random() < 0.15):
            # Users rate down just what is bad, before its record comes or after.
            one.thumb(-1 if turn_bad else 1, after=dice.choice((0, 1_000, 30_000)))


def _strangers(dice: Dice, made: Traffic, start: int) -> None:
    """A version that is first heard of when the hour's new names have run out, and is bad."""
    made.strangers.add("stranger-plain-bad")
    for number in range(40):
        turn = Turn(f"stranger/{number}")
        made.turns.append(turn)
        ended = start + MAIN + 20_000 + dice.randint(0, SPAN // 3)
        plain(Made(dice, turn, "stranger-plain-bad", ended, "canary", "shop", bad=number % 2 == 0))


def _garbage(dice: Dice, at: int, number: int) -> Garbage:
    nameless = (
        b'{"event_id": "e", "trace_id": "%s", "response_id": "nameless-%d", "project_name": "p", "started_at": %d'
    )
    nameless += b', "ended_at": %d, "input": "q", "output": "good", "metadata": {"agent_id": "assistant"}}'
    value = dice.choice((b"{no json %d" % number, b"\xff %d" % number, nameless))
    if value is nameless:
        value = nameless % (dice.uuid7(at).encode(), number, at // 1000 - 2, at // 1000 - 1)
    return Garbage(at, value, b"nameless" in value)


def _befall(dice: Dice, made: Traffic, start: int, what: str) -> None:
    after, before = start + MAIN + SPAN + 30 * MINUTE, start + MAIN - 2 * MINUTE
    during = start + MAIN + dice.randint(0, SPAN)
    at = {
        NEW_NAMES: before,
        "state lost before the traffic ends": during,
        "workers change places": during,
        "records come again": during,
    }.get(what, after)
    made.happenings.append(Happening(at, what))
