"""Renders what the demo shows while the day passes by, and at its end."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rampgate.report.console import table
from rampgate.report.state import conservation_section, coverage_section
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


def scene(bar: Progress, coverage: CoverageAnswer, conservation: Conservation) -> Group:
    return Group(bar, table(coverage_section(coverage)), table(conservation_section(conservation)))


def explained(title: str, text: RenderableType) -> Panel:
    return Panel(text, title=title, title_align="left", expand=False)
