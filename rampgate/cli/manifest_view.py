"""The manifest as tables for a person, and a difference in colours where stdout is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from rampgate.cli.query_view import plain
from schemas.answers import EvalConfig
from schemas.judges import Enforcement, Milestone

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def show_difference(text: str) -> None:
    console = Console(soft_wrap=True, highlight=False, file=sys.stdout)
    for line in text.splitlines():
        colour = _COLOURS.get(line[:1])
        said = plain(line, 2_000)
        console.print(f"[{colour}]{said}[/]" if colour else said)


def show_category(answer: EvalConfig) -> None:
    whose = f", as {answer.vertical} sees it" if answer.vertical is not None else ""
    title = f"{answer.category}{whose}: manifest {answer.manifest_version}, registry {answer.config_hash}"
    _judges(plain(title), [judge.model_dump(mode="json") for judge in answer.judges])


def show_manifest(found: Mapping[str, Any]) -> None:
    dataset = found.get("dataset", {})
    title = f"Dataset {dataset.get('name')}, version {dataset.get('version')}, {dataset.get('items')} items"
    table = Table(title=plain(title), title_justify="left", box=box.SIMPLE_HEAD)
    for head in ("Category", "Of", "Fires"):
        table.add_column(head, overflow="fold")
    for name, category in found["categories"].items():
        table.add_row(plain(name), plain(category.get("vertical") or "all"), plain(", ".join(category["fires"]), 1_000))
    Console().print(table)
    whose = f"as {found['vertical']} sees them" if found["vertical"] is not None else "as the platform sees them"
    _judges(plain(f"Judges {whose}, registry {found['config_hash']}"), found["judges"])


def _judges(title: str, judges: Sequence[Mapping[str, Any]]) -> None:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in ("Judge", "Class", "Merge", "Ramp", "Full", "Floor", "Blocks", "Due"):
        numeric = head in ("Merge", "Ramp", "Full", "Floor")
        table.add_column(head, justify="right" if numeric else "left", no_wrap=head == "Judge", overflow="fold")
    for judge in judges:
        row = (
            judge["id"],
            str(judge["classification"]).partition("_")[0],
            *(_value(judge["thresholds"][milestone]) for milestone in Milestone),
            f"{judge['floor']:g}",
            _blocks(judge["enforcement"]),
            judge["recalibration_due"],
        )
        table.add_row(*(plain(cell) for cell in row))
    Console().print(table)


def _blocks(enforcement: Mapping[str, str]) -> str:
    at = [milestone for milestone in Milestone if enforcement[milestone] == Enforcement.BLOCK]
    if at == list(Milestone):
        return "always"
    return "from ramp" if at == [Milestone.PRE_RAMP, Milestone.PRE_FULL] else ", ".join(at) or "never"


def _value(threshold: float | bool) -> str:
    return str(threshold).lower() if isinstance(threshold, bool) else f"{threshold:g}"
