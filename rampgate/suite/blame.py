"""Runs `rampgate suite blame`: asks the cases that fell again with each changed part reverted, and names the part that
makes them fall."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from typer import Argument, Option

from rampgate.command import Context, Document, command, log_errors
from rampgate.console import Failure, run
from rampgate.options import StoreOption
from rampgate.report.model import Cell, Report, Section, Value
from schemas.counting import counted

if TYPE_CHECKING:
    from evalcore.suite.blame import Arm
    from rampgate.suite.scoring import ScoredSample
    from rampgate.suite.suite_files import Suite

AFTER: Final = 1_000
"""Fresh samples are numbered from here on, so that no run's are taken for them, and a killed command's are not asked
for again."""
MOST: Final = 10
"""Cases that are asked again, the worst first."""
WORDS: Final = {
    "part": "{parts} makes the cases fall: with it alone as at {base}, {share:.0%} of the fall is undone",
    "together": "only together they do it: {parts}; to revert any one of them is enough",
    "parts": "each has a share in it: {parts}",
    "none_alone": "no part alone: with all reverted the cases are better, with none of them alone; each may do it by "
    "itself",
    "not_again": "no part: with fresh samples the candidate is no worse than with all parts reverted; it was chance, "
    "or what changed is in none of the parts",
}
LAST_RUN: Final = "it takes what the last `suite run` of this configuration found"
GONE: Final = {
    "--candidate": LAST_RUN,
    "--smoke": LAST_RUN,
    "--cases": f"at most {MOST} cases are asked again, the worst first",
    "--let-go": "name the case in main's suite file, as in `let_go: [CASE]`",
    "--seed": "every test is drawn with the same one",
}
ValueT = TypeVar("ValueT")


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


@command(blame_report, flags="configs", gone=GONE)
def blame(
    context: Context,
    path: Annotated[Path, Argument(metavar="SUITE", help="the suite's YAML file")],
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
    from evalcore.scoring.calls import Spend
    from evalcore.suite.blame import SAMPLES, blamed
    from evalcore.suite.comparison import SEED
    from evalcore.suite.flipped import flipped
    from rampgate.registry.rule_history import NoHistory
    from rampgate.suite.compare import compared_files
    from rampgate.suite.generation import Left
    from rampgate.suite.opened import open_suite, suite_in
    from rampgate.suite.runs.base_folder import suite_at
    from rampgate.suite.runs.run_document import comparison_of, score_of
    from rampgate.suite.runs.session import Session
    from rampgate.suite.runs.stored import MAIN, named_run

    log_errors()
    opened = open_suite(path, context.settings, store)
    settings, suite = opened.settings, opened.suite
    with closing(opened.place.opened()) as kept, TemporaryDirectory(prefix="rampgate-blame-") as made:
        ran = [(file, smoke) for smoke in (False, True) if (file := opened.results_file(smoke=smoke)).is_file()]
        smoke = bool(ran) and ran[0][1]
        older, stored = named_run(baseline or MAIN, kept, suite.file.suite, opened.home, smoke=smoke)
        base = base or (stored.commit if stored is not None else "") or MAIN
        try:
            then = suite_at(path, base, Path(made, "base"), partial(suite_in, settings))
        except NoHistory as error:
            raise Failure(f"--base {base}: {error}") from error
        changed = _changed(path, suite, then, base)
        if not ran:
            raise Failure("this configuration has no results: `rampgate suite run` first")
        compared = compared_files(comparison_of(suite, opened.judges, older, ran[0][0], smoke=smoke))
        flips = flipped(compared.paired, compared.judged.reasons, compared.baseline, compared.candidate)
        fell = [one.pair.case_id for one in flips[:MOST]]
        told = {"suite": suite.file.suite, "base": base, "changed": changed, "cases": fell, "samples": SAMPLES}
        if not fell:
            return Document(told | {"found": None, "guilty": [], "message": f"nothing in {ran[0][0]} blocks"})
        asked = suite.asking(fell, SAMPLES)
        score, scale, _ = score_of(suite, opened.judges)
        spend = Spend(settings.gate_calls, settings.gate_tokens, max_cost)
        reverting = dict.fromkeys([(), tuple(changed), *((name,) for name in changed)])
        arms: dict[tuple[str, ...], Arm] = {}
        for number, parts in enumerate(reverting):
            arm = _reverted(asked, then, parts, Path(made, f"{number}"))
            samples = run(partial(Session(settings, arm, False, opened.rubric, kept, AFTER).score, spend))
            if any(isinstance(one.generated.answer, Left) or one.left for one in samples):
                raise Failure(f"no part is named: {spend.spent}; what was answered is kept, and the next call resumes")
            arms[parts] = _arm(samples, score, *scale, now=not parts)
    found = blamed(arms[()], arms[tuple(changed)], {name: arms[name,] for name in changed}, SEED)
    share = min(found.suspects[0].restored, 1.0)
    return Document(
        told
        | {
            "found": str(found.found),
            "guilty": found.guilty,
            "message": WORDS[found.found].format(parts=", ".join(found.guilty), base=base, share=share),
            "candidate": found.candidate,
            "reverted": found.reverted,
            "p_value": found.p_value,
            "suspects": [asdict(one) for one in found.suspects],
            "judge_calls": spend.calls,
            "cost_usd": spend.dollars if spend.priced else None,
        }
    )


def _changed(path: Path, now: Suite, then: Suite, base: str) -> list[str]:
    """The parts that differ, those that one side alone has among them. Raises Failure where reverting them would revert
    nothing, or not all."""
    changed = sorted(name for name in {*now.parts, *then.parts} if now.parts.get(name) != then.parts.get(name))
    told, home = now.file.candidate, now.folder.resolve()
    if not changed:
        raise Failure(
            f"{path}: no part differs from {base}; what makes the cases fall is in no part of `candidate.parts`, or "
            "--base is another commit than the baseline's"
        )
    if not (home / told.folder).resolve().is_relative_to(home):
        raise Failure(f"{path}: candidate.folder: {told.folder} is not in the suite's folder, whose copy is changed")
    of_files = [name for name in changed if any(name in {*one.parts} - {*one.values} for one in (now, then))]
    if told.url is not None and of_files:
        raise Failure(
            f"{path}: candidate.parts.{of_files[0]}: what an address is made of can't be reverted from here; "
            "only parts with a `value` can"
        )
    return changed


def _reverted(now: Suite, then: Suite, names: Collection[str], folder: Path) -> Suite:
    """The candidate's suite with these parts as they were, in `folder`, a copy of its own that is made."""
    from rampgate.suite.runs.base_folder import with_interpreter
    from rampgate.suite.suite_files import NO_CODE, files_of

    shutil.copytree(now.folder, folder, symlinks=True, ignore=shutil.ignore_patterns(*NO_CODE))
    for name in names:
        for path in files_of(now.file.candidate.parts.get(name), folder):
            path.unlink()
        for path in files_of(then.file.candidate.parts.get(name), then.folder):
            target = folder / path.relative_to(then.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)

    def as_then(here: Mapping[str, ValueT], there: Mapping[str, ValueT]) -> dict[str, ValueT]:
        return {name: one for name, one in here.items() if name not in names} | {
            name: there[name] for name in names if name in there
        }

    home = with_interpreter(replace(now, folder=folder), now.folder)
    return replace(home, parts=as_then(now.parts, then.parts), values=as_then(now.values, then.values))


def _arm(samples: Sequence[ScoredSample], score: str, low: float, high: float, *, now: bool) -> Arm:
    """What is missing counts so that it blames no part; the agent's own error is the worst value."""
    arm: dict[str, list[float]] = {}
    for one in samples:
        value = one.scores.get(score)
        missing = high if now else low
        number = low if one.error is not None else value if isinstance(value, (int, float)) else missing
        arm.setdefault(one.case.id, []).append(float(number))
    return arm
