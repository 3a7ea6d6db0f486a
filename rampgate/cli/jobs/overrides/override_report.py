"""Reports the overrides of a quarter, from their topic or from files of an audit (PC5 §5.5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.ports import Unavailable
from rampgate.ci_gate.inputs import BadFile, lines
from rampgate.ci_gate.override_log import Quarter, read, report
from rampgate.console import Failure, plain, print_json, run
from rampgate.logs import configure_logs
from rampgate.settings_sources import load_settings
from rampgate.tables import make_table


def show(word: str, audits: Sequence[Path], kafka: str | None, *, as_json: bool) -> None:
    """Write the report to stdout. Raises Failure."""
    try:
        quarter = Quarter.of(word)
        entries = [one for path in audits for _, one in lines(path)]
    except BadFile as error:
        raise Failure(str(error)) from error
    except ValueError as error:
        raise Failure(f"--quarter: {error}") from error
    if not audits:
        settings = load_settings({"kafka": kafka})
        configure_logs("error", "console")
        try:
            entries = run(lambda: read(settings, quarter))
        except Unavailable as error:
            raise Failure(str(error)) from error
    made = report(entries, quarter)
    print_json(made) if as_json else _show(made)


def _show(made: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    table = make_table(None, "When", "What", "Pull request", "Author", "Approved by", "Until", "Why")
    for one in made["overrides"]:
        what = one.get("milestone") or ", ".join(map(str, one.get("judges") or ()))
        where = f"{one.get('repository', '')}{one.get('pull_request', '')}"
        cells = (one.get("at"), f"{one['kind']} {what}", where, one.get("author"), one.get("approved_by"))
        table.add_row(*(plain(cell or "") for cell in (*cells, one.get("expires"), one.get("justification"))))
    console.print(table)
    console.print(f"{made['count']} overrides in {made['quarter']}")
    for name in ("by_kind", "by_milestone", "by_repository", "by_author", "by_approver", "by_pair"):
        told = ", ".join(f"{plain(word)} {count}" for word, count in made[name].items())
        console.print(f"  {name.replace('_', ' ')}: {told or 'none'}")
