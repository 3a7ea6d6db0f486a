"""Runs `rampgate suite blame`: asks the cases that fell anew with each changed part reverted, and names the guilty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from rich.console import Console

from agents.ports import Unavailable
from evalcore.scoring.calls import Spend
from evalcore.suite.blame import SAMPLES, Arm, Blame, Found, blamed
from evalcore.suite.flipped import flipped
from rampgate.console import Failure, plain, print_json, run
from rampgate.logs import configure_logs
from rampgate.store.sealed import SealedStore
from rampgate.suite.blame.reverted import Sides, sides, with_reverted
from rampgate.suite.compare import compared_files
from rampgate.suite.dataset_cases import dataset_cases
from rampgate.suite.generation import Left
from rampgate.suite.opened import Opened, open_suite
from rampgate.suite.runs.named import named_run
from rampgate.suite.runs.run_document import comparison_of, score_of
from rampgate.suite.runs.session import Session
from rampgate.suite.runs.stored import MAIN
from rampgate.suite.scoring import ScoredSample
from rampgate.suite.suite_files import Suite, read_suite
from rampgate.tables import make_table
from schemas.counting import counted

AFTER: Final = 1_000
"""Fresh samples are numbered from here on, so that no run's are taken for them, and a killed command's are not asked
for again."""
NOW, ALL = "the candidate", "all reverted"


@dataclass(frozen=True)
class Options:
    """The options of the command, under their own names."""

    suite: Path
    baseline: str | None
    candidate: Path | None
    base: str | None
    cases: int
    store: str | None
    seed: int
    configs: Path | None
    as_json: bool
    smoke: bool = False
    max_cost: float | None = None


def blame_suite(options: Options) -> int:
    """Ask, tell, and return 0, whoever is to blame. Raises Failure."""
    configure_logs("error", "console")
    opened = open_suite(options.suite, options.configs, options.store)
    try:
        store = opened.place.opened()
    except Unavailable as error:
        raise Failure(str(error)) from error
    try:
        with TemporaryDirectory(prefix="rampgate-blame-") as made:
            told = _blame(options, opened, store, Path(made))
    finally:
        store.close()
    if options.as_json:
        print_json(told)
    else:
        _show(told)
    return 0


def _blame(options: Options, opened: Opened, store: SealedStore, made: Path) -> dict[str, Any]:
    settings, suite = opened.settings, opened.suite
    name = suite.file.suite
    baseline, stored = named_run(options.baseline or MAIN, store, name, opened.home, smoke=options.smoke)
    base = options.base or (stored.commit if stored is not None else "") or MAIN
    both = sides(options.suite, base, made / "base", partial(read_suite, fetched=partial(dataset_cases, settings)))
    results, smoke = _results(options, opened)
    score, scale, _ = score_of(suite, opened.judges)
    compared = compared_files(comparison_of(suite, opened.judges, baseline, results, options.seed, smoke=smoke))
    fell = [
        one.pair.case_id
        for one in flipped(compared.paired, compared.judged.reasons, compared.baseline, compared.candidate)
    ][: options.cases]
    told = {"suite": suite.file.suite, "base": base, "changed": both.changed, "cases": fell, "samples": SAMPLES}
    if not fell:
        return told | {"found": None, "guilty": [], "message": f"nothing in {results} blocks; nobody is to blame"}
    asked = replace(
        suite, cases=[case for case in suite.cases if case.id in set(fell)],
        file=suite.file.model_copy(update={"samples": SAMPLES}),
    )  # fmt: skip
    spend = Spend(settings.gate_calls, settings.gate_tokens, options.max_cost)
    both = Sides(asked, both.baseline)
    arms = _arms(both, made)
    found = {
        name: run(partial(Session(settings, one, False, opened.rubric, store, AFTER).score, spend))
        for name, one in arms.items()
    }
    if any(isinstance(one.generated.answer, Left) or one.left for samples in found.values() for one in samples):
        raise Failure(f"nobody is named: {spend.spent}; what was answered is kept, and the next call goes on with it")
    at = {name: _arm(samples, score, scale, kind=name) for name, samples in found.items()}
    parts = {name: at.get(name, at[ALL]) for name in both.changed}
    blame = blamed(at[NOW], at[ALL], parts, options.seed)
    return told | {
        "found": str(blame.found),
        "guilty": blame.guilty,
        "message": said(blame, base),
        "candidate": blame.candidate,
        "reverted": blame.reverted,
        "p_value": blame.p_value,
        "suspects": [asdict(one) for one in blame.suspects],
        "judge_calls": spend.calls,
        "cost_usd": spend.dollars if spend.priced else None,
    }


def _results(options: Options, opened: Opened) -> tuple[Path, bool]:
    """The candidate's results, where its own run has left them or as named, and whether they are of the smoke set.
    Raises Failure."""
    if options.candidate is not None:
        return options.candidate, options.smoke
    for smoke in (True,) if options.smoke else (False, True):
        if (file := opened.results_file(smoke=smoke)).is_file():
            return file, smoke
    raise Failure("this configuration has not been run: `rampgate suite run` first, or name its results, --candidate")


def _arms(both: Sides, made: Path) -> dict[str, Suite]:
    """The candidate as it is, with all reverted, and with each changed part reverted, of a single one once."""
    arms = {NOW: with_reverted(both, (), made / "now"), ALL: with_reverted(both, both.changed, made / "all")}
    if len(both.changed) > 1:
        arms |= {name: with_reverted(both, (name,), made / f"{n}") for n, name in enumerate(both.changed)}
    return arms


def _arm(samples: Sequence[ScoredSample], score: str, scale: tuple[float, float], kind: str) -> Arm:
    """What is missing counts so that it blames nobody; the agent's own error is the worst value."""
    low, high = scale
    arm: dict[str, list[float]] = {}
    for one in samples:
        value = one.scores.get(score)
        missing = high if kind == NOW else low
        number = low if one.error is not None else value if isinstance(value, (int, float)) else missing
        arm.setdefault(one.case.id, []).append(float(number))
    return arm


def said(blame: Blame, base: str) -> str:
    """What was found, in a sentence."""
    guilty, share = ", ".join(blame.guilty), min(blame.suspects[0].restored, 1.0)
    return {
        Found.PART: f"{guilty} is to blame: with it alone as at {base}, {share:.0%} of the fall is undone",
        Found.TOGETHER: f"only together do they do it: {guilty}; to revert any one of them is enough",
        Found.PARTS: f"each has a share in it: {guilty}",
        Found.NONE_ALONE: "no part alone: with all reverted the cases are better, with none of them alone; "
        "each may do it by itself",
        Found.NOT_AGAIN: "nobody: with fresh samples the candidate is no worse than with all parts reverted; it was "
        "chance, or what changed is in none of the parts",
    }[blame.found]


def _show(told: Mapping[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if told["found"] is not None:
        table = make_table(None, "Reverted", ">Score", ">Undone", ">p")
        table.add_row("nothing", f"{told['candidate']:.3f}", "", "")
        for one in told["suspects"]:
            style = "bold red" if one["guilty"] else ""
            name = f"[{style}]{plain(one['part'])}[/]" if style else plain(one["part"])
            table.add_row(name, f"{one['mean']:.3f}", f"{one['restored']:.0%}", f"{one['p_value']:.2g}")
        table.add_row("all", f"{told['reverted']:.3f}", "", f"{told['p_value']:.2g}")
        console.print(f"{counted(len(told['cases']), 'case')} that fell, {told['samples']} fresh samples each")
        console.print(table)
    console.print(plain(told["message"], 1_000))
