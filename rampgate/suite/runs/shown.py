"""Shows a run of a suite on a terminal, or the plan of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from rampgate.console import plain, print_json
from rampgate.suite.report.outcome import beyond_smoke, dropped_words, stopped
from schemas.counting import counted


def show_run(told: Mapping[str, Any], spent: str) -> None:
    answers, console = told["answers"], Console(highlight=False, soft_wrap=True)
    _show_head(console, told)
    _show_answers(console, answers)
    if told["unnamed_code"]:
        named = f"{plain(told['unnamed_code'], 300)} is in no part of the candidate"
        console.print(f"no answer is kept: {named}; name it, as in `code: {{files: ['*.py']}}`")
    if dropped := dropped_words(told):
        console.print(f"[yellow]{plain(dropped, 500)}[/]")
    calls = ", ".join(
        filter(None, (counted(told["judge_calls"], "call"), spent, f"{told['unscored']:,} scores missing"))
    )
    console.print(f"judges: {calls}")
    for judge, cut in told["judged_cut"].items():
        console.print(f"judges: {plain(judge)} was shown a part alone of {counted(cut, 'answer')}: they are too long")
    for judge, pairs in told["pairwise"].items():
        console.print(f"pairs: {plain(judge)} {pairs_in_words(pairs)}")
    console.print(f"results: {plain(told['results'], 500)}")
    if (why := stopped(told)) is not None:
        console.print(f"[red]{plain(why.words)}[/]" + (f": {plain(why.detail, 500)}" if why.detail else ""))
    baseline = told["baseline"]
    if baseline is None:
        console.print("no baseline yet: the run is compared with nothing; `--label main` makes it one")
    elif baseline["label"]:
        at = ", ".join(filter(None, (plain(baseline["commit"])[:12], f"{baseline['age']} ago")))
        console.print(f"baseline: {plain(baseline['label'])}'s run ({at})")
    if baseline is not None and baseline["judged_again"]:
        console.print(f"baseline: {baseline['judged_again']:,} answers judged again, by the judges of now")


def pairs_in_words(pairs: Mapping[str, Any]) -> str:
    """What a judge said of pairs."""
    words = (("wins", "win", None), ("ties", "tie", None), ("losses", "loss", "losses"), ("calls", "call", None))
    said = ", ".join(counted(pairs[name], one, more) for name, one, more in words)
    missing = f", {pairs['unanswered']:,} unanswered" if pairs["unanswered"] else ""
    bias = pairs["position_bias"]
    return said + missing + (f"; the order changed {bias:.0%} of the answers" if bias else "")


def tell_plan(told: Mapping[str, Any], *, as_json: bool) -> int:
    """Tell what a run would ask and cost; returns the exit code."""
    if as_json:
        print_json(told)
        return 0
    console = Console(highlight=False, soft_wrap=True)
    _show_head(console, told)
    answers, calls = told["answers"], told["judge_calls"]
    console.print(f"answers: {answers['to_ask']:,} to ask for, {answers['kept']:,} kept")
    tokens = f", about {told['tokens']:,} tokens" if told["tokens"] is not None else ""
    console.print(f"judges: {counted(calls['to_ask'], 'call')}{tokens}, {calls['kept']:,} answers kept")
    dollars = told["cost_usd"]
    console.print(
        f"cost: about ${dollars:,.4f}" if dollars is not None else "cost: no earlier run tells what calls cost"
    )
    return 0


def tell_answers(told: Mapping[str, Any], *, as_json: bool) -> int:
    """Tell what `--only generate` wrote; returns the exit code, 1 where something is left."""
    if as_json:
        print_json(told)
    else:
        console, answers = Console(highlight=False, soft_wrap=True), told["answers"]
        _show_head(console, told)
        console.print(
            f"answers: {answers['asked']:,} asked for, {answers['kept']:,} kept, {answers['failed']:,} failed"
        )
        console.print(f"{plain(told['file'], 500)}: sha256 {told['sha256']}")
        if told["left"] is not None:
            left = f"{told['left']['answers']:,} answers are left, the next run goes on with them"
            console.print(f"[red]incomplete[/]: {plain(told['left']['why'])}; {left}")
    return 1 if told["left"] is not None else 0


def _show_answers(console: Console, many: Mapping[str, int]) -> None:
    console.print(f"answers: {many['asked']:,} asked for, {many['kept']:,} kept, {many['failed']:,} failed")


def _show_head(console: Console, told: Mapping[str, Any]) -> None:
    console.print(f"{told['suite']}, {told['set']} set: {told['cases']:,} cases × {told['samples']}")
    if more := beyond_smoke(told):
        console.print(f"[yellow]{more}[/]")
