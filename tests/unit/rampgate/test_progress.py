"""Long work says on stderr how far it is, what it cost and how long it may take."""

from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from evalcore.scoring.calls import CallFailed, Spend
from rampgate.progress import EVERY, Progress, cost, duration, stderr
from tests.unit.evalcore.scoring.scoring_rig import GOOD, Model, down, many, scorer


class Clock:
    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=200, soft_wrap=True, highlight=False)


def said(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_log_has_a_line_at_most_every_ten_seconds_with_done_cost_and_time_left(clock: Clock, log: Console) -> None:
    spend = Spend()
    with Progress("drift", 600, unit="questions", spend=spend, now=clock, console=log):
        for _ in range(120):
            clock.at += 0.5
            spend.charge(spend.reserve(100), 900)
            spend.settle()
    lines = said(log).splitlines()
    assert lines[:-1] == [
        f"drift: {20 * n} of 600 questions, {900 * 20 * n:,} tokens, about {duration((600 - 20 * n) / 2)} left"
        for n in range(1, 7)
    ]
    assert lines[-1] == "drift: 120 of 600 questions, 108,000 tokens, in 60 s"
    assert EVERY == 10.0


def test_a_question_without_an_answer_is_none_of_those_that_were_answered(clock: Clock, log: Console) -> None:
    spend = Spend()
    with Progress("drift", 120, unit="questions", spend=spend, now=clock, console=log):
        for number in range(120):
            clock.at += 0.1
            spend.settle(answered=number < 20)
    assert said(log).splitlines()[-1] == "drift: 20 of 120 questions, 100 without an answer, in 12 s"


def test_the_time_left_is_unknown_at_first_and_where_nobody_knows_how_much_there_is(clock: Clock, log: Console) -> None:
    with Progress("reading", 100, now=clock, console=log) as shown:
        assert shown.left() == "time left unknown"
        clock.at += 1
        shown.advance()
        clock.at += 1
        shown.advance()
        assert shown.left() == "about 98 s left" or shown.left() == "about 2 min left"
    with Progress("reading", now=clock, console=log) as shown:
        clock.at += 11
        shown.advance(1_000)
    assert "reading: 1,000, time left unknown" in said(log)


def test_answers_that_were_kept_do_not_promise_an_early_end(clock: Clock, log: Console) -> None:
    """A run that goes on settles 900 of 1,000 questions at once; the others take a second each."""
    with Progress("drift", 1_000, now=clock, console=log) as shown:
        shown.advance(900)
        for _ in range(70):
            clock.at += 1
            shown.advance()
        assert shown.left() == "about 30 s left"


def test_short_work_that_cost_nothing_says_nothing(clock: Clock, log: Console) -> None:
    with Progress("reading", 10, now=clock, console=log) as shown:
        clock.at += 5
        shown.advance(10)
    assert said(log) == ""


def test_a_failure_leaves_neither_a_thread_nor_a_hidden_cursor_and_says_how_far_it_came(clock: Clock) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    before = threading.active_count()
    spend = Spend()

    def work() -> None:
        with Progress("drift", 10, spend=spend, now=clock, console=terminal):
            clock.at += 1
            spend.charge(spend.reserve(0), 10)
            spend.settle()
            assert threading.active_count() == before
            raise CallFailed(down().kind, "the model went away")

    with pytest.raises(CallFailed):
        work()
    drawn = said(terminal)
    assert "\x1b[?25l" in drawn, "the line moves"
    assert drawn.rindex("\x1b[?25h") > drawn.rindex("\x1b[?25l"), "the cursor is shown again"
    assert drawn.splitlines()[-1].endswith("drift: 1 of 10, 10 tokens, in 1 s")


def test_nobody_reading_it_does_not_end_the_work(clock: Clock) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with Progress("reading", 10, now=clock, console=stderr(Gone())) as shown:
        for _ in range(10):
            clock.at += 11
            shown.advance()
    assert shown.done == 10


def test_its_words_come_from_outside_and_are_shown_as_they_are(clock: Clock, log: Console) -> None:
    with Progress("[red]a\x1b[31m", 2, now=clock, console=log) as shown:
        clock.at += 11
        shown.advance()
    assert "[red]a" in said(log)
    assert "\x1b" not in said(log)


async def test_a_question_is_settled_by_a_call_a_kept_answer_or_a_failure() -> None:
    model, spend, settled = Model(lambda output, _: GOOD if output < "o5" else "prose"), Spend(), list[int]()
    ours = scorer(model)
    await ours.score("before", many(3))
    spend.listener = lambda: settled.append(spend.settled)
    await ours.score("drift", many(10), spend=spend)
    assert (spend.questions, settled) == (10, list(range(1, 11)))
    assert spend.unanswered == 5
    assert spend.answered == spend.calls, "answers that are no score cost, too"


def test_the_cost_is_in_dollars_where_the_server_tells_them() -> None:
    spend = Spend()
    assert cost(spend) == ""
    spend.charge(spend.reserve(100), 1_000, 0.0042)
    assert cost(spend) == "$0.0042"
    spend.charge(spend.reserve(100), 1_000, 12.5)
    assert cost(spend) == "$12.50"
    spend.charge(spend.reserve(100), 1_000)
    assert cost(spend) == "at least $12.50"
    tokens = Spend()
    tokens.charge(tokens.reserve(100), 1_234)
    assert cost(tokens) == "1,234 tokens"
