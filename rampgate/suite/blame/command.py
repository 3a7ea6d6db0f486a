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
from rampgate.ci_gate.asked import registry_of
from rampgate.console import Failure, plain, print_json, run
from rampgate.logs import configure_logs
from rampgate.settings import Settings
from rampgate.settings_sources import load_settings
from rampgate.store.place import place_of
from rampgate.store.sqlite_file import STORE
from rampgate.suite.blame.reverted import Sides, sides, with_reverted
from rampgate.suite.compare import Options as Comparison
from rampgate.suite.compare import compared_files
from rampgate.suite.dataset_cases import dataset_cases
from rampgate.suite.run import FOLDER, judges_of, results_file
from rampgate.suite.runs.run_document import score_of
from rampgate.suite.runs.session import Session
from rampgate.suite.scoring import Rubric, ScoredSample
from rampgate.suite.suite_files import Suite, read_suite
from rampgate.tables import make_table

AFTER: Final = 1_000
"""Fresh samples are numbered from here on, so that no run's are taken for them, and a killed command's are not asked
for again."""
NOW, ALL = "the candidate", "all reverted"


@dataclass(frozen=True)
class Options:
    """The options of the command, under their own names."""

    suite: Path
    baseline: Path
    candidate: Path | None
    base: str
    cases: int
    store: str | None
    seed: int
    configs: Path | None
    as_json: bool


def blame_suite(options: Options) -> int:
    """Ask, tell, and return 0, whoever is to blame. Raises Failure."""
    configure_logs("error", "console")
    settings = load_settings({"configs": options.configs})
    with TemporaryDirectory(prefix="rampgate-blame-") as made:
        both = sides(options.suite, options.base, Path(made, "base"), _reading(settings))
        told = _blame(options, settings, both, Path(made))
    if options.as_json:
        print_json(told)
    else:
        _show(told)
    return 0


def _reading(settings: Settings) -> Any:
    return lambda path: read_suite(path, partial(dataset_cases, settings))


def _blame(options: Options, settings: Settings, both: Sides, made: Path) -> dict[str, Any]:
    suite = both.candidate
    registry = registry_of(settings, suite.file.vertical) if suite.file.judges else None
    judges = judges_of(suite.file, registry)
    score, scale, safe_at = score_of(suite, judges)
    results = options.candidate or _results(suite)
    compared = compared_files(
        Comparison(
            options.baseline, results, score, scale, tuple(suite.file.safety), safe_at, options.seed, as_json=False
        )
    )
    fell = [
        one.pair.case_id
        for one in flipped(compared.paired, compared.judged.reasons, compared.baseline, compared.candidate)
    ][: options.cases]
    told = {"suite": suite.file.suite, "base": options.base, "changed": both.changed, "cases": fell, "samples": SAMPLES}
    if not fell:
        return told | {"found": None, "guilty": [], "message": f"nothing in {results} blocks; nobody is to blame"}
    asked = replace(
        suite, cases=[case for case in suite.cases if case.id in set(fell)],
        file=suite.file.model_copy(update={"samples": SAMPLES}),
    )  # fmt: skip
    rubric = Rubric(judges, suite.checks, registry.manifest.get("schema", {}) if registry is not None else {})
    spend, both = Spend(settings.gate_calls, settings.gate_tokens), Sides(asked, both.baseline)
    arms = _arms(both, made)
    try:
        store = place_of(options.store, suite.folder / FOLDER / STORE, settings).opened()
    except Unavailable as error:
        raise Failure(str(error)) from error
    try:
        found = {
            name: run(partial(Session(settings, one, False, rubric, store, AFTER).run, spend))
            for name, one in arms.items()
        }
    finally:
        store.close()
    at = {name: _arm(samples, score, scale, kind=name) for name, samples in found.items()}
    parts = {name: at.get(name, at[ALL]) for name in both.changed}
    blame = blamed(at[NOW], at[ALL], parts, options.seed)
    return told | {
        "found": str(blame.found),
        "guilty": blame.guilty,
        "message": said(blame, options.base),
        "candidate": blame.candidate,
        "reverted": blame.reverted,
        "p_value": blame.p_value,
        "suspects": [asdict(one) for one in blame.suspects],
        "judge_calls": spend.calls,
        "cost_usd": spend.dollars if spend.priced else None,
    }


def _results(suite: Suite) -> Path:
    """Where the candidate's own run has left its results. Raises Failure."""
    for smoke in (False, True):
        if (file := results_file(suite, smoke=smoke)).is_file():
            return file
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
        console.print(f"{len(told['cases'])} cases that fell, {told['samples']} fresh samples each")
        console.print(table)
    console.print(plain(told["message"], 1_000))
