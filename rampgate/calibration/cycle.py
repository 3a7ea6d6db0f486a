"""Runs `rampgate calibrate jade --vertical V`: a vertical's calibration round, step by step (PF-9 §5.3, NFR-3, AC-8).

Each run goes on where the last one stopped. A step is done when the document says so; what it leaves is there before.
So a run that was killed has the same step to do again, and ends with the same bytes.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day
from typing import Any

from evalcore.registry import disk
from evalcore.registry.files import REFERENCE_SET
from rampgate.calibration.folder import DIFF, Folder, alone, evaluation_folder, folder_of, result
from rampgate.calibration.steps.given import Given, Options
from rampgate.calibration.steps.order import STEPS, require_reference
from rampgate.checks.stored_outputs import BASELINE
from rampgate.command import Document
from rampgate.console import Failure, plain
from rampgate.logs import configure_logs
from rampgate.registry.view import require_vertical
from schemas.calibration_cycle import LONGEST_SECONDS, Cycle, State, Step, StepDone, Window
from schemas.judges import judge_id
from schemas.settings import parse_moment
from schemas.verticals import Vertical

METRIC = "eval_recalibration_cycle_duration_seconds"
LEAST_TURNS = 200
DAYS = 30


def calibrate_vertical(options: Options, clock: Callable[[], float] = time.monotonic) -> Document:
    """Resume the round and take it as far as it comes; exit code 1 where a step was refused, or a judge is inverted or
    has no new floor. Raises Failure."""
    configure_logs("error", "console")
    context, vertical = options.context, options.vertical
    settings = context.settings
    require_vertical(vertical, context.registry.verticals)
    folder = folder_of(settings.configs, vertical, options.round or f"{context.today:%Y-%m}")
    cycle = _begun(options, folder, context.verticals[vertical])
    beside = {
        evaluation_folder(settings.configs, vertical): re.compile(f"{REFERENCE_SET}|{BASELINE}"),
        settings.configs / "rules" / vertical: re.compile(r".*\.ya?ml"),
    }
    given = Given(**vars(options), folder=folder, reported=folder.hashes(DIFF)[DIFF])
    with alone(folder, beside):
        if (known := folder.document()) is None:
            folder.save(cycle)  # what is fixed when a round begins is fixed where this run is killed
        try:
            cycle = _gone_on(given, known or cycle, clock)
        except Failure:
            folder.forget_unless_drawn()
            raise
        took = sum(folder.seconds().values()) if (folder.path / ".seconds.json").exists() else None
        done = _done(cycle)
        if took is not None and done:
            if context.metrics_file is not None:
                context.metrics.recalibration_duration.labels(vertical).observe(took)
            folder.forget_seconds()
    fields = {**cycle.model_dump(mode="json"), "folder": str(folder.path), "seconds": took, "done": done}
    return Document(fields, _code(cycle))


def _begun(options: Options, folder: Folder, owner: Vertical) -> Cycle:
    """The round's document: as it is, or of a round that begins today. Raises Failure where a word of the command is
    another one than the round's."""
    known = folder.document()
    if known is None:
        if options.turns is not None and (options.since is not None or options.until is not None):
            raise Failure("--since, --until: of turns in Opik; those of --turns FILE are drawn from as they are")
        if options.ticket is None:
            raise Failure("--ticket: a round cites its ticket, such as PLT-700 (PF-9 FR-3)")
        if not options.acceptable:
            raise Failure("--acceptable: from which score of people's on is a turn acceptable? 4, or JUDGE=4 for each")
        return Cycle(
            vertical=options.vertical, round=folder.path.name, day=disk.today(), ticket=options.ticket,
            report=options.report or f"specs/verticals/{options.vertical}/eval/rounds/{folder.path.name}/report.md",
            size=options.size or LEAST_TURNS, runs=options.runs or 3, acceptable=_cuts(options),
            window=window_of(options.since, options.until, owner.project) if options.turns is None else None,
        )  # fmt: skip
    if options.since is not None or options.until is not None:
        raise Failure("--since, --until: the window was fixed when the round began; another one has another --round")
    asked: dict[str, Any] = {name: getattr(options, name) for name in ("ticket", "report", "size", "runs")}
    asked["acceptable"] = _cuts(options) or None
    for name, value in asked.items():
        if value is not None and value != getattr(known, name):
            raise Failure(f"--{name}: the round began with {getattr(known, name)}; another one has another --round")
    return known


def window_of(since: str | None, until: str | None, project: str) -> Window:
    """The time of the turns to draw from: 30 full days in UTC where no one says another. Raises Failure."""
    today = datetime.combine(disk.today(), time_of_day(), UTC)
    end = _moment("--until", until) if until is not None else today
    start = _moment("--since", since) if since is not None else today - timedelta(days=DAYS)
    if not start < end <= datetime.now(UTC):
        raise Failure(f"--since, --until: {start:%F %R} to {end:%F %R} is no time in the past")
    return Window(project=project, since=start, until=end)


def _moment(option: str, text: str) -> datetime:
    try:
        return datetime.fromtimestamp(parse_moment(text) // 1_000, UTC)
    except ValueError as error:
        raise Failure(f"{option}: {error}") from error


def _cuts(options: Options) -> dict[str, float]:
    return {judge_id(name): cut for name, cut in sorted(options.acceptable.items())}


def _gone_on(given: Given, cycle: Cycle, clock: Callable[[], float]) -> Cycle:
    """Does each step that is not done, or that read what is another one now, until one has to wait. What was written is
    not derived again."""
    require_reference(given, cycle)
    if cycle.step(Step.WRITE).state is State.DONE:
        for step, done in cycle.steps.items():
            if changed := [name for name, was in done.outputs.items() if given.hashes(name)[name] != was]:
                told = f"is not what {step} left, and the round is written; take the file from the history"
                raise Failure(f"{given.folder.path / changed[0]}: {told}")
        return cycle
    for step, (job, reads) in STEPS.items():
        before, inputs = cycle.step(step), reads(given, cycle)
        if before.state is State.DONE:
            changed = sorted(name for name in {*inputs, *before.inputs} if inputs.get(name) != before.inputs.get(name))
            changed += [name for name, was in before.outputs.items() if given.hashes(name)[name] != was]
            if not changed:
                continue
            sys.stderr.write(f"{step}: again, since {', '.join(changed)} changed\n")
        began = clock()
        outcome = job(given, cycle)
        for name, text in outcome.files.items():
            given.folder.write(name, text)
        given.folder.took(step, clock() - began)
        inputs, cycle = reads(given, cycle), cycle.model_copy(update=dict(outcome.found))
        done = StepDone(
            state=outcome.state, inputs=inputs, outputs=given.hashes(*outcome.files), told=outcome.told,
            results={name: result(cycle, name) for name in outcome.found},
        )  # fmt: skip
        cycle = cycle.model_copy(update={"steps": {**cycle.steps, step: done}})
        if step is Step.DIFF:
            within = sum(given.folder.seconds().values()) < LONGEST_SECONDS
            cycle = cycle.model_copy(update={"within_four_hours": within})
        given.folder.save(cycle)
        sys.stderr.write(f"{step}: {done.state}{': ' if done.told else ''}{plain(done.told, 600)}\n")
        if done.state is not State.DONE:
            break
    return cycle


def _done(cycle: Cycle) -> bool:
    return all(cycle.step(one).state is State.DONE for one in Step if one is not Step.WRITE)


def _code(cycle: Cycle) -> int:
    if any(one.state is State.REFUSED for one in cycle.steps.values()):
        return 1
    if not _done(cycle):
        return 0
    return 1 if any(one.inverted is not False for one in cycle.inversion) or not all(
        one.proposed for one in cycle.floors
    ) else 0  # fmt: skip
