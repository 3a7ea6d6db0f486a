"""Compares the tools that cases called with those of their references (AgentCI Step 2): `rampgate check trajectory`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct
from typer import Argument

from rampgate.command import Context, Document, command
from rampgate.input_files import BadFile, Id, Text, read, twice
from rampgate.report.checks import trajectory_report

ToolNames = Annotated[
    list[Text], Meta(description="a list of tools' names", extra={"remedy": "an empty one where none was called"})
]


class TrajectoryLine(Struct, gc=False):
    """The tools that a case called, and those of its reference, in their order."""

    case_id: Id
    actual: ToolNames
    reference: ToolNames


@command(trajectory_report)
def trajectory(
    context: Context,
    file: Annotated[Path, Argument(help="JSON Lines: case_id, actual, reference, both lists of tools' names")],
) -> Document:
    """Compare the tools that cases called with their references: match modes, precision and recall, order.

    Says what the path layer of a spec would find, and decides nothing: exit code 0, or 2 for a bad file.

    Example: rampgate check trajectory paths.jsonl --json
    """
    cases: dict[str, dict[str, Any]] = {}
    lines: dict[str, int] = {}
    for number, line in read(file, TrajectoryLine):
        name = str(line.case_id)
        if (before := lines.setdefault(name, number)) != number:
            raise twice(file, number, "case_id", repr(name[:80]), before)
        cases[name] = _compared(line)
    if not cases:
        raise BadFile(f"{file}: has no lines; one is {{case_id, actual, reference}}")
    return Document({"cases": list(cases.values())})


def _compared(line: TrajectoryLine) -> dict[str, Any]:
    from evalcore.trajectory.matching import matches
    from evalcore.trajectory.metrics import (
        sequence_edit,
        sequence_lcs,
        tool_f1,
        tool_precision,
        tool_recall,
    )
    from schemas.specs import MatchMode

    both = line.actual, line.reference
    reasons = {mode.value: matches(mode, *both) for mode in MatchMode}
    return {
        "case_id": line.case_id,
        **{name: why is None for name, why in reasons.items()},
        "precision": tool_precision(*both),
        "recall": tool_recall(*both),
        "f1": tool_f1(*both),
        "lcs": sequence_lcs(*both),
        "edit": sequence_edit(*both),
        "reasons": {name: why for name, why in reasons.items() if why is not None},
    }
