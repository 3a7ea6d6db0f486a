"""Shows a comparison on a terminal: a row a slice, why it does not pass, and the cases that fell, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from evalcore.suite.flipped import Flip, flipped
from evalcore.suite.results import Sample
from evalcore.suite.words import Word
from rampgate.console import plain
from rampgate.report.console import COLOURS, WIDE
from rampgate.suite.compared import Compared
from rampgate.tables import make_table
from schemas.counting import counted

SHOWN = 5
"""Cases that fell of which a terminal shows the outputs; `--json` has fifty."""
LONGEST = 600


def show(compared: Compared, told: Mapping[str, Any]) -> None:
    """`told` is the document of the comparison."""
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    judged, paired = compared.judged, compared.paired
    heads = (">Cases", ">Delta", "95 %", "Word", ">Finds")
    table = make_table(f"{plain(paired.score)}, candidate against baseline", "Slice", *heads)
    for row in (told["headline"], *told["slices"]):
        table.add_row(plain(row["slice"]) if "slice" in row else "[bold]all cases[/]", *_row(row))
    console.print(table)
    console.print("[dim]Finds: the drop that is found 8 times in 10[/]")
    for reason in judged.reasons:
        console.print(f"  {plain(reason.message, LONGEST)}")
    for confirmation in compared.confirmations:
        console.print(f"  asked again: {plain(confirmation.message, LONGEST)}")
    if compared.unconfirmed:
        console.print(f"  not asked again: {plain(compared.unconfirmed, LONGEST)}")
    fell = flipped(paired, judged.reasons, compared.baseline, compared.candidate)
    for flip in fell[:SHOWN]:
        _show_flip(console, flip, paired.score)
    if len(fell) > SHOWN:
        console.print(f"  [dim]{len(fell) - SHOWN:,} more cases fell; --json has them[/]")
    word = judged.verdict
    console.print(f"[{COLOURS[word]}]{word}[/]: {told['said']}; {counted(len(paired.pairs), 'case')} compared")


TONES = {Word.WORSE: "red", Word.NOT_CONFIRMED: "yellow", Word.CANNOT_TELL: "dim"}


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    ends, power = one["ci95"], one["power"]
    tone = TONES.get(one["word"])
    word = plain(one["said"], LONGEST)
    return (
        f"{one['n']:,}", _figure(one["delta"], "+.3f"), f"{ends[0]:+.3f} to {ends[1]:+.3f}" if ends else "",
        f"[{tone}]{word}[/]" if tone else word, _figure(power["confirmed_smallest_drop"] if power else None),
    )  # fmt: skip


def _figure(value: float | None, form: str = ".3f") -> str:
    return "" if value is None else f"{value:{form}}"


def _show_flip(console: Console, flip: Flip, score: str) -> None:
    baseline, candidate = flip.pair.means(best=False)
    console.print(f"  [bold]{plain(flip.pair.case_id)}[/] {baseline:.3f} → {candidate:.3f}")
    for side, sample in (("baseline", flip.baseline), ("candidate", flip.candidate)):
        console.print(f"    {side}: {plain(_said(sample), LONGEST)}")
        if reason := sample.reasons.get(score):
            console.print(f"      judge: {plain(reason, LONGEST)}")
        if sample.trace:
            console.print(f"      trace: {plain(sample.trace, LONGEST)}")


def _said(sample: Sample) -> str:
    return f"failed: {sample.error}" if sample.error else sample.output or "(no output in the file)"
