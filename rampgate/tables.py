"""Tables on a terminal: one look for all commands."""

from __future__ import annotations

from rich import box
from rich.table import Table


def make_table(title: str | None, *heads: str) -> Table:
    """An empty table with these columns. A head that begins with `>` aligns its column to the right, as numbers are."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in heads:
        table.add_column(head.removeprefix(">"), justify="right" if head.startswith(">") else "left", overflow="fold")
    return table
