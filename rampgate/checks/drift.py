"""Compares judges' scores now with those of their calibration (PF-9 FR-13): `rampgate check drift`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.report.checks import drift_report

ITEMS = 120


@command(drift_report, flags="model configs")
def drift(
    context: Context,
    baseline: Annotated[
        Path | None, Argument(help="scores at the calibration, JSON Lines {judge_id, item_id, score}")
    ] = None,
    current: Annotated[Path | None, Argument(help="scores now, best of the same items")] = None,
    outputs: Annotated[
        Path | None, Option(help="ask the judges: these stored outputs, JSON Lines with `input` and `output` each")
    ] = None,
    seed: Annotated[
        str | None, Option(help="ask the judges: outputs made up from this seed; the same, the same")
    ] = None,
    items: Annotated[int, Option(min=2, help="with --seed: how many outputs")] = ITEMS,
    base: Annotated[
        str | None, Option(help="only judges whose rule file, or a component it names, differs from this version")
    ] = None,
    judge: Annotated[list[str] | None, Option(help="only this judge, once or more")] = None,
    capture: Annotated[
        int | None, Option(min=1, help="calibrate: so many runs; write the last as baseline, show the limit")
    ] = None,
    baselines: Annotated[
        Path | None, Option(help="the baseline's file; default: drift-baseline.jsonl of registry or vertical")
    ] = None,
    vertical: Annotated[str | None, Option(help="whose limits hold; default: the platform's")] = None,
) -> Document:
    """Compare judges' scores now with those of their calibration, and show whose have moved.

    KL divergence in nats, now from then, against the limit in the judge's rule file (`drift`). Of two files each judge
    is answered, also one that is not registered, on the scale that its scores fit. With --outputs or --seed the judges
    are asked about the same outputs as at their calibration (--capture 3), past all kept answers. Exit code 1 if a
    judge has drifted or that is unknown, 2 without a model.

    Example: rampgate check drift calibration.jsonl today.jsonl --json
    """
    from rampgate.checks.drift_now import Asked, capture_baseline, compare_now
    from rampgate.checks.drift_scores import compared, found
    from rampgate.checks.score_files import read_scores
    from rampgate.registry.view import require_vertical

    if outputs is not None or seed is not None:
        if baseline is not None:
            raise Failure("give files of scores, or outputs for the judges, not both")
        asked = Asked(context, outputs, seed or "", items, base, tuple(judge or ()), baselines, vertical)
        return compare_now(asked) if capture is None else capture_baseline(asked, capture)
    if baseline is None or current is None:
        raise Failure(
            "give two files of scores, BASELINE CURRENT, or outputs for the judges: --outputs FILE, --seed WORD"
        )
    # Two files are compared whole: an option that would do nothing looks like a check that held.
    given = {
        "--items": items != ITEMS, "--base": base is not None, "--judge": bool(judge),
        "--capture": capture is not None, "--baselines": baselines is not None,
    }  # fmt: skip
    if without_use := [name for name, is_given in given.items() if is_given]:
        raise Failure(
            f"{', '.join(without_use)}: goes with --outputs FILE or --seed WORD, and not with two files of scores; "
            "leave it out"
        )
    registry = context.registry
    if vertical is not None:
        require_vertical(vertical, registry.verticals)
    checked = compared(read_scores(baseline), read_scores(current), registry, vertical)
    return found(checked, vertical, registry, {"baseline": str(baseline), "current": str(current)})
