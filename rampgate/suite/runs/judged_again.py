"""Has a baseline's stored outputs judged again where its scores are of other judges than the candidate's.

A changed rubric moves scores without any change of the agent: both sides are scored by the same versions, or are not
compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from agents.ports import Unavailable
from evalcore.gates.golden import OF_ANSWERS
from evalcore.scoring.calls import Spend
from evalcore.scoring.runner import Scorer
from rampgate.input_files import BadFile, lines
from rampgate.suite.generation import Generated, KeptValues
from rampgate.suite.result_files import read_run
from rampgate.suite.scoring import Answering, Numbered, Place, Rubric
from rampgate.suite.suite_files import SuiteCase


@dataclass(frozen=True)
class JudgedAgain:
    """A baseline's lines by the judges of now. `many`: how many were scored again, `left` how many scores were not,
    because the run had spent what it may."""

    lines: Sequence[Mapping[str, Any]]
    many: int = 0
    left: int = 0


async def judged_again(
    path: Path, cases: Sequence[SuiteCase], rubric: Rubric, scorer: Scorer | None, spend: Spend, traces: KeptValues
) -> JudgedAgain:
    """Returns the baseline's lines, those of other versions scored again. A line of a case that is not in the suite, or
    asks something else by now, stays as it is: it is not compared. Raises BadFile, also for a line without the output
    that would have to be judged."""
    known = {case.id: case for case in cases}
    read_run(path)  # checks its lines
    found = list(lines(path))
    old = [(line, row) for line, row in found if _is_old(row, known.get(str(row["case_id"])), rubric)]
    for line, row in old:
        if row.get("output") is None and row.get("error") is None:
            why = "its scores are of other versions of the judges" if row.get("versions") else "it names no versions"
            raise BadFile(f"{path}:{line}: output: there is none to judge again, and {why}; run the baseline again")
    held = await stored_traces([row for _, row in old], traces)
    given = {
        _place(row): Generated(*_place(row), held.get(trace_of_row(row), {}) | {"output": row["output"]}, kept=True)
        for _, row in old
        if row.get("error") is None
    }

    async def asking(some: Sequence[Numbered]) -> list[Answering]:
        return [partial(_given, given[case.id, sample]) for case, sample in some]

    wanted = [(known[case], sample) for case, sample in given]
    scored = {(one.case.id, one.generated.sample): one for one in await rubric.score(wanted, asking, scorer, spend)}
    for _, row in old:
        row["versions"] = rubric.versions_of(known[str(row["case_id"])])
        if (made := scored.get(_place(row))) is not None:
            row |= {"scores": made.scores, "reasons": made.reasons}
    rows = [row for _, row in found] if old else ()
    return JudgedAgain(rows, len(given), sum(len(one.left) for one in scored.values()))


def _is_old(row: Mapping[str, Any], case: SuiteCase | None, rubric: Rubric) -> bool:
    if case is None or (row.get("question_hash") or "") not in ("", case.question):
        return False
    return bool((row.get("versions") or {}) != rubric.versions_of(case))


def _place(row: Mapping[str, Any]) -> Place:
    return str(row["case_id"]), row["sample"]


async def _given(one: Generated) -> Generated:
    return one


def trace_of_row(row: Mapping[str, Any]) -> str:
    """The hash of the trace that a line names, empty where it names none."""
    return str((row.get("trace") or {}).get("hash") or "")


async def stored_traces(rows: Sequence[Mapping[str, Any]], traces: KeptValues) -> dict[str, dict[str, Any]]:
    """What the store has of the rows' traces: the fields that judges read."""
    names = sorted({name for row in rows if (name := trace_of_row(row))})
    try:
        held = await traces.get_many(names)
    except Unavailable:
        return {}
    read = {name: orjson.loads(value) for name, value in zip(names, held, strict=True) if value is not None}
    return {name: {field: trace[field] for field in OF_ANSWERS if field in trace} for name, trace in read.items()}
