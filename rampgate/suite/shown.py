"""Shows a comparison on a terminal: a row a slice, why it does not pass, and the cases that fell, side by side."""

from __future__ import annotations

from rich.console import Console

from evalcore.suite.comparison import Difference
from evalcore.suite.flipped import Flip, flipped
from evalcore.suite.power import Power
from evalcore.suite.results import Sample
from rampgate.ci_gate.report_texts import COLOURS, WIDE
from rampgate.console import plain
from rampgate.suite.compared import Compared
from rampgate.tables import make_table
from schemas.counting import counted

SHOWN = 5
"""Cases that fell of which a terminal shows the outputs; `--json` has fifty."""
LONGEST = 600


def show(compared: Compared) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = max(console.width, WIDE)
    judged, paired = compared.judged, compared.paired
    heads = (">Cases", ">Baseline", ">Candidate", ">Delta", "95 %", ">p", ">Holm's p", ">Finds", "Notes")
    table = make_table(f"{plain(paired.score)}, candidate against baseline", "Slice", *heads)
    headline = judged.comparison.headline
    power, of_slices = compared.power
    whole = _row(headline, power, worse=judged.headline_worse, significant=judged.headline_significant)
    table.add_row("[bold]all cases[/]", *whole)
    for name, one in judged.comparison.slices.items():
        table.add_row(plain(name), *_row(one, of_slices.get(name), worse=one.worse, significant=one.excludes_zero))
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
    console.print(f"[{COLOURS[word]}]{word}[/]: {counted(len(paired.pairs), 'case')} compared")


def _row(one: Difference, power: Power | None, *, worse: bool, significant: bool) -> tuple[str, ...]:
    ends = "" if one.ci95 is None else f"{one.ci95[0]:+.3f} to {one.ci95[1]:+.3f}"
    notes = [
        word
        for word, holds in (
            ("[red]worse[/]", worse),
            ("significant", significant),
            ("small", one.small),
            ("skewed", one.skewed),
        )
        if holds
    ]
    if one.wins is not None:
        notes.append(f"wins {one.wins.rate:.0%}")
    return (
        f"{one.n:,}", _figure(one.baseline), _figure(one.candidate), _figure(one.delta, "+.3f"), ends,
        _figure(one.p_value), _figure(one.holm_p), _figure(power.confirmed_smallest if power else None),
        ", ".join(notes),
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
