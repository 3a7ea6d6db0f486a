"""The options of `rampgate suite run`, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rampgate.console import Failure, Format
from rampgate.suite.runs.only import Only, Side


@dataclass(frozen=True)
class Options:
    """The options of the command, under their own names."""

    suite: Path
    smoke: bool
    out: Path | None
    store: str | None
    baseline: Path | None
    seed: int
    let_go: tuple[str, ...]
    configs: Path | None
    as_json: bool
    reports: tuple[Path, ...] = ()
    format: Format = Format.TEXT
    plan: bool = False
    max_cost: float | None = None
    label: str = ""
    canary: Path | None = None
    only: Only | None = None
    answers: Path | None = None
    confirm: bool = True
    base: str | None = None
    commit: str | None = None
    proposed: Path | None = None
    again: Path | None = None
    side: Side | None = None
    fresh: tuple[Path, Path] | None = None
    first_run: bool = False


def fresh_files(baseline: Path | None, candidate: Path | None) -> tuple[Path, Path] | None:
    """Raises Failure for one without the other."""
    if baseline is not None and candidate is not None:
        return baseline, candidate
    if baseline is candidate:
        return None
    raise Failure("--fresh-baseline and --fresh-candidate go together: one side alone decides nothing")


def check_halves(options: Options) -> None:
    """Raises Failure for options of a run that is split over jobs which do not go together."""
    one, score, generate = options, options.only is Only.SCORE, options.only is Only.GENERATE
    wrong = {
        "--only and --answers go together: the file that answers go to, or come from": (
            (one.only is None) != (one.answers is None)
        ),
        "--again goes with --only": one.again is not None and one.only is None,
        "--side goes with --only generate and --again: who answers anew": (
            (one.side is not None) != (generate and one.again is not None)
        ),
        "--fresh-baseline and --fresh-candidate go with --only score, without --again": (
            one.fresh is not None and (not score or one.again is not None)
        ),
        "--confirm none asks for no fresh samples: leave out --again and the fresh answers": (
            not one.confirm and (one.again is not None or one.fresh is not None)
        ),
        "--plan is of a whole run: leave out --again and the fresh answers": (
            one.plan and (one.again is not None or one.fresh is not None)
        ),
        "--smoke: the file of --again names the cases that are answered anew": one.side is not None and one.smoke,
    }
    for said, holds in wrong.items():
        if holds:
            raise Failure(said)
    for option, path in (("--answers", one.answers), ("--out", one.out)):
        if path is not None and path.exists() and not path.is_file():
            raise Failure(f"{option} {path}: is no regular file; name one, or a new one")
