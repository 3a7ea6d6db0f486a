"""Tells on stderr how far long work is: done of how many, what it has cost, and how long it may still take.

A terminal has one line that moves; a log has a line now and then. Nothing goes to stdout, so `--json` stays one
document. It draws when it is told of something, in the caller's thread: there is no other one to outlive a failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Self

from evalcore.scoring.calls import Spend
from rampgate.console import plain

if TYPE_CHECKING:
    from rich.console import Console

EVERY = 10.0
"""Seconds between two lines of a log. Work that takes less says nothing while it goes on."""
FRAME = 0.1
"""Seconds between two pictures of a terminal's line, and between two looks at the rate."""
WINDOW = 60.0
"""Seconds over which the rate is taken: neither one slow call nor answers that were kept make the time left jump."""


class Progress:
    """One piece of work, shown for as long as the context lasts; its line ends with it, however it ends. `done` and
    `total` count `unit`; a total of None is not known yet. With `spend` both are the questions that it counts, and its
    cost is shown."""

    def __init__(
        self,
        what: str,
        total: int | None = None,
        *,
        unit: str = "",
        spend: Spend | None = None,
        now: Callable[[], float] = time.monotonic,
        console: Console | None = None,
        every: float = EVERY,
    ) -> None:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Drawing

        self.done, self.total, self.told = 0, total, 0
        self._what, self._unit, self._spend = plain(what), unit, spend
        self._now, self._every = now, every
        self._console = console or stderr()
        self._began = self._line = self._frame = now()
        # The rate is rich's; it draws on a terminal alone.
        self._drawing = Drawing(
            TextColumn("{task.description}"), BarColumn(20), TextColumn("{task.fields[said]}"), console=self._console,
            auto_refresh=False, transient=True, redirect_stdout=False, get_time=now, speed_estimate_period=WINDOW,
            disable=not self._console.is_terminal,
        )  # fmt: skip
        self._task = self._drawing.add_task(self._what, total=total, said="")

    def at(self, done: int, total: int | None = None, what: str | None = None) -> None:
        """The work is this far; it is called something else from now on where `what` says so."""
        self.done, self.total = done, total if total is not None else self.total
        self._what = plain(what) if what is not None else self._what
        self._tell()

    def advance(self, many: int = 1) -> None:
        self.at(self.done + many)

    def call(self, what: str) -> None:
        """The work is called this from now on."""
        self.at(self.done, what=what)

    def of_spend(self) -> None:
        """What `spend` tells of: a question was settled."""
        if self._spend is not None:
            self.at(self._spend.settled, max(self._spend.questions, self._spend.expected, self.total or 0))

    def __enter__(self) -> Self:
        if self._spend is not None:
            self._spend.listener = self.of_spend
        self._drawing.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """Take the moving line away, and say in one that stays how far the work came; nothing of work that cost nothing
        and was short."""
        if self._spend is not None:
            self._spend.listener = lambda: None
        self._drawing.stop()
        if self.told or (self._spend is not None and self._spend.calls):
            self._write(f"in {duration(self._now() - self._began)}")

    def left(self) -> str:
        """How long it may take, of what the last minute was like."""
        if self.total is None:
            return "time left unknown"
        seconds = self._drawing.tasks[0].time_remaining
        return "time left unknown" if seconds is None else f"about {duration(seconds)} left"

    def _tell(self) -> None:
        now = self._now()
        if now - self._frame < FRAME:
            return
        self._frame = now
        self._drawing.update(self._task, completed=self.done, total=self.total, description=self._what)
        if not self._console.is_terminal:
            if now - self._line >= self._every:
                self._line = now
                self._write(self.left())
            return
        self._drawing.update(self._task, said=f"{self._figures()}, {self.left()}")
        self._safely(self._drawing.refresh)

    def _figures(self) -> str:
        unanswered = self._spend.unanswered if self._spend is not None else 0
        answered = self.done - unanswered
        done = f"{answered:,} of {self.total:,}" if self.total is not None else f"{answered:,}"
        missing = f"{unanswered:,} without an answer" if unanswered else ""
        return ", ".join(filter(None, (f"{done} {self._unit}".strip(), missing, cost(self._spend))))

    def _write(self, ending: str) -> None:
        self.told += 1
        self._safely(lambda: self._console.print(f"{self._what}: {self._figures()}, {ending}"))

    def _safely(self, draw: Callable[[], None]) -> None:
        """Work does not end because no one reads how far it is."""
        try:
            draw()
        except OSError:
            self._console.quiet = True


def stderr(file: IO[str] | None = None) -> Console:
    """A console on stderr, or the file. Where rich would end the program, and put stdout away, because no one reads
    stderr any more, this one says nothing more."""
    from rich.console import Console

    class Aside(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True

    return Aside(file=file, stderr=True, highlight=False, soft_wrap=True)


def cost(spend: Spend | None) -> str:
    """What was spent: US dollars where the model's server tells of each call, else tokens."""
    if spend is None or not spend.calls:
        return ""
    if spend.priced == 0:
        return f"{spend.tokens:,} tokens"
    least = "" if spend.priced >= spend.answered else "at least "
    return f"{least}${spend.dollars:,.4f}" if spend.dollars < 1 else f"{least}${spend.dollars:,.2f}"


def duration(seconds: float) -> str:
    """Seconds in words that a person reads at a glance."""
    whole = max(round(seconds), 0)
    if whole < 90:
        return f"{whole} s"
    return f"{round(whole / 60)} min" if whole < 5_400 else f"{whole / 3_600:.1f} h"
