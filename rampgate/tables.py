"""Tables on a terminal: one look for all commands, and the two figures that commands and the demo both show."""

from __future__ import annotations

from rich import box
from rich.table import Table

from rampgate.console import plain
from schemas.answers import Conservation, CoverageAnswer
from schemas.outcomes import State


def make_table(title: str | None, *heads: str) -> Table:
    """An empty table with these columns. A head that begins with `>` aligns its column to the right, as numbers are."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in heads:
        table.add_column(head.removeprefix(">"), justify="right" if head.startswith(">") else "left", overflow="fold")
    return table


def coverage_table(answer: CoverageAnswer) -> Table:
    """The join's coverage, a row a vertical (PF-9 FR-11)."""
    title = f"Join coverage, last {answer.window_seconds:,} s"
    table = make_table(title, "Vertical", ">Both present", ">Missing signal", ">Missing trace", ">Coverage")
    for row in answer.verticals:
        rate = "[dim]no turns[/]" if row.rate is None else f"{row.rate:.1%}"
        figures = (row.both_present, row.missing_signal, row.missing_trace)
        table.add_row(plain(row.vertical), *(f"{figure:,}" for figure in figures), rate)
    return table


def conservation_table(answer: Conservation) -> Table:
    """The states that consumed records ended in, a row a signal; a difference is red."""
    heads = (f">{state.replace('_lettered', ' letters').capitalize()}" for state in State)
    table = make_table(f"Conservation, last {answer.window_seconds:,} s", "Signal", ">Consumed", *heads, ">Difference")
    for signal, row in answer.signals.items():
        figures = (row.consumed, *(getattr(row, state) for state in State))
        colour = "red" if row.difference else "green"
        table.add_row(signal, *(f"{figure:,}" for figure in figures), f"[{colour}]{row.difference:,}[/]")
    return table
