"""Runs `rampgate suite blame`: asks the cases that fell again with each changed part reverted, and names the part that
makes them fall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.report.model import Cell, Report, Section, Value
from rampgate.suite.options import StoreOption
from schemas.counting import counted

if TYPE_CHECKING:
    from evalcore.suite.blame import Arm, Blame
    from rampgate.store.sealed import SealedStore
    from rampgate.suite.opened import Opened
    from rampgate.suite.scoring import ScoredSample

AFTER: Final = 1_000
"""Fresh samples are numbered from here on, so that no run's are taken for them, and a killed command's are not asked
for again."""
MOST: Final = 10
"""Cases that are asked again, the worst first."""
NOW, ALL = "the candidate", "all reverted"
WORDS: Final = {
    "part": "{parts} makes the cases fall: with it alone as at {base}, {share:.0%} of the fall is undone",
    "together": "only together they do it: {parts}; to revert any one of them is enough",
    "parts": "each has a share in it: {parts}",
    "none_alone": "no part alone: with all reverted the cases are better, with none of them alone; each may do it by "
    "itself",
    "not_again": "no part: with fresh samples the candidate is no worse than with all parts reverted; it was chance, "
    "or what changed is in none of the parts",
}


def blame_report(told: Document) -> Report:
    """Which parts were reverted, and what that undid."""
    title = f"Which part of {told['suite']} makes cases fall"
    if told["found"] is None:
        return Report(title, told["message"], "pass")
    rows: list[list[Value]] = [["nothing", told["candidate"], "", None]]
    for one in told["suspects"]:
        name: Value = Cell(one["part"], "fail") if one["guilty"] else one["part"]
        rows.append([name, one["mean"], f"{one['restored']:.0%}", one["p_value"]])
    rows.append(["all", told["reverted"], "", told["p_value"]])
    asked = f"{counted(len(told['cases']), 'case')} that fell, {told['samples']} fresh samples each"
    section = Section(asked, ("Reverted", "Score", "Undone", "p"), rows)
    return Report(title, told["message"], "fail" if told["guilty"] else "pass", [section])


LAST_RUN: Final = "it takes what the last `suite run` of this configuration found"
GONE: Final = {
    "--candidate": LAST_RUN,
    "--smoke": LAST_RUN,
    "--cases": f"at most {MOST} cases are asked again, the worst first",
    "--let-go": "name the case in main's suite file, as in `let_go: [CASE]`",
    "--seed": "every test is drawn with the same one",
}


@command(blame_report, flags="configs", gone=GONE)
def blame(
    context: Context,
    suite: Annotated[Path, Argument(metavar="SUITE", help="the suite's YAML file")],
    baseline: Annotated[
        str | None, Option(help="the baseline's results, or a stored run; default: main's last that passed")
    ] = None,
    base: Annotated[
        str | None, Option(metavar="REF", help="the commit that the baseline is of; default: the stored run's, or main")
    ] = None,
    max_cost: Annotated[
        float | None, Option(min=0, help="US dollars that it may cost; beyond them no part is named")
    ] = None,
    store: StoreOption = None,
) -> Document:
    """Name the changed part of the candidate that makes cases fall.

    The cases that block in the last `suite run` are asked again, six fresh samples each: as the candidate is, with all
    changed parts as they are in git at --base, and with each one alone as it is there. It names the part, or says that
    only together they do it, or that none alone does. Exit code 0, whichever it is.

    Example: rampgate suite blame examples/suite/suite.yaml --baseline main.jsonl --base origin/main
    """
    from agents.ports import Unavailable
    from rampgate.console import Failure
    from rampgate.logs import configure_logs
    from rampgate.suite.opened import open_suite

    configure_logs("error", "console")
    opened = open_suite(suite, context.settings, store)
    try:
        kept = opened.place.opened()
    except Unavailable as error:
        raise Failure(str(error)) from error
    try:
        with TemporaryDirectory(prefix="rampgate-blame-") as made:
            return Document(_blamed(suite, opened, kept, Path(made), baseline, base, max_cost))
    finally:
        kept.close()


def _blamed(
    path: Path,
    opened: Opened,
    store: SealedStore,
    made: Path,
    named: str | None,
    base: str | None,
    max_cost: float | None,
) -> dict[str, Any]:
    from evalcore.scoring.calls import Spend
    from evalcore.suite.blame import SAMPLES, blamed
    from evalcore.suite.comparison import SEED
    from evalcore.suite.flipped import flipped
    from rampgate.console import Failure, run
    from rampgate.suite.blame.reverted import Sides, sides, with_reverted
    from rampgate.suite.compare import compared_files
    from rampgate.suite.dataset_cases import dataset_cases
    from rampgate.suite.generation import Left
    from rampgate.suite.runs.named import named_run
    from rampgate.suite.runs.run_document import comparison_of, score_of
    from rampgate.suite.runs.session import Session
    from rampgate.suite.runs.stored import MAIN
    from rampgate.suite.suite_files import read_suite

    settings, suite = opened.settings, opened.suite
    ran = [(file, smoke) for smoke in (False, True) if (file := opened.results_file(smoke=smoke)).is_file()]
    smoke = bool(ran) and ran[0][1]
    baseline, stored = named_run(named or MAIN, store, suite.file.suite, opened.home, smoke=smoke)
    base = base or (stored.commit if stored is not None else "") or MAIN
    both = sides(path, base, made / "base", partial(read_suite, fetched=partial(dataset_cases, settings)))
    if not ran:
        raise Failure("this configuration has no results: `rampgate suite run` first")
    score, scale, _ = score_of(suite, opened.judges)
    compared = compared_files(comparison_of(suite, opened.judges, baseline, ran[0][0], SEED, smoke=smoke))
    flips = flipped(compared.paired, compared.judged.reasons, compared.baseline, compared.candidate)
    fell = [one.pair.case_id for one in flips[:MOST]]
    told = {"suite": suite.file.suite, "base": base, "changed": both.changed, "cases": fell, "samples": SAMPLES}
    if not fell:
        return told | {"found": None, "guilty": [], "message": f"nothing in {ran[0][0]} blocks"}
    asked = replace(
        suite, cases=[case for case in suite.cases if case.id in fell],
        file=suite.file.model_copy(update={"samples": SAMPLES}),
    )  # fmt: skip
    reverting = {NOW: (), ALL: both.changed} | {name: (name,) for name in both.changed if len(both.changed) > 1}
    spend = Spend(settings.gate_calls, settings.gate_tokens, max_cost)
    arms: dict[str, Arm] = {}
    for number, (name, parts) in enumerate(reverting.items()):
        arm = with_reverted(Sides(asked, both.baseline), parts, made / f"{number}")
        samples = run(partial(Session(settings, arm, False, opened.rubric, store, AFTER).score, spend))
        if any(isinstance(one.generated.answer, Left) or one.left for one in samples):
            raise Failure(f"no part is named: {spend.spent}; what was answered is kept, and the next call resumes")
        arms[name] = _arm(samples, score, *scale, now=name == NOW)
    found = blamed(arms[NOW], arms[ALL], {name: arms.get(name, arms[ALL]) for name in both.changed}, SEED)
    return told | {
        "found": str(found.found),
        "guilty": found.guilty,
        "message": _message(found, base),
        "candidate": found.candidate,
        "reverted": found.reverted,
        "p_value": found.p_value,
        "suspects": [asdict(one) for one in found.suspects],
        "judge_calls": spend.calls,
        "cost_usd": spend.dollars if spend.priced else None,
    }


def _message(found: Blame, base: str) -> str:
    share = min(found.suspects[0].restored, 1.0)
    return WORDS[found.found].format(parts=", ".join(found.guilty), base=base, share=share)


def _arm(samples: Sequence[ScoredSample], score: str, low: float, high: float, *, now: bool) -> Arm:
    """What is missing counts so that it blames no part; the agent's own error is the worst value."""
    arm: dict[str, list[float]] = {}
    for one in samples:
        value = one.scores.get(score)
        missing = high if now else low
        number = low if one.error is not None else value if isinstance(value, (int, float)) else missing
        arm.setdefault(one.case.id, []).append(float(number))
    return arm
