"""Renders what the demo shows while the day passes by, and at its end."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from schemas.answers import Conservation, CoverageAnswer

NEXT = """[bold]What to try next[/]
  rampgate dev                  the same stack, kept running: send it your own events, read it with the Opik SDK
  make test                     the same on Apache Kafka, Valkey and DynamoDB Local
  docker compose up             workers, feed, Prometheus and Grafana around it
  docs/how-it-works.md          why nothing is lost and nothing doubled
  docs/verdicts.md              how to read a verdict, and what to do about it
"""


def progress_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(bar_width=40), MofNCompleteColumn(), TimeElapsedColumn()
    )


def coverage_table(answer: CoverageAnswer) -> Table:
    table = Table(title="Join coverage, per vertical (PF-9 FR-11)", title_justify="left", expand=False)
    table.add_column("vertical")
    for name in ("both present", "missing trace", "missing signal", "rate"):
        table.add_column(name, justify="right")
    for row in answer.verticals:
        rate = "–" if row.rate is None else f"{row.rate:.1%}"
        table.add_row(row.vertical, str(row.both_present), str(row.missing_trace), str(row.missing_signal), rate)
    return table


def conservation_table(answer: Conservation) -> Table:
    table = Table(title="Conservation: every record in exactly one state", title_justify="left", expand=False)
    table.add_column("signal")
    for name in ("consumed", "done", "superseded", "dead-lettered", "parked", "filtered", "difference"):
        table.add_column(name, justify="right")
    for name, row in answer.signals.items():
        numbers = (row.consumed, row.done, row.superseded, row.dead_lettered, row.parked, row.filtered, row.difference)
        table.add_row(name, *map(str, numbers))
    return table


def scene(bar: Progress, coverage: CoverageAnswer, conservation: Conservation) -> Group:
    return Group(bar, coverage_table(coverage), conservation_table(conservation))


def explained(title: str, text: RenderableType) -> Panel:
    return Panel(text, title=title, title_align="left", expand=False)
