"""Has a baseline's stored outputs judged again where its scores are of other judges than the candidate's.

A changed rubric moves scores without any change of the agent: both sides are scored by the same versions, or are not
compared.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from rampgate.suite.scoring import Numbered, Rubric
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
    """Returns the baseline's lines, those of other versions scored anew. A line of a case that is not in the suite, or
    asks something else by now, stays as it is: it is not compared. Raises BadFile, also for a line without the output
    that would have to be judged."""
    known = {case.id: case for case in cases}
    now = {case.id: (case.question, rubric.versions_of(case)) for case in cases}
    there = read_run(path).values()
    if not any(_is_old(case.case_id, case.question, one.versions, now) for case in there for one in case.samples):
        return JudgedAgain(())
    found = list(lines(path))
    old = [
        number
        for number, (_, row) in enumerate(found)
        if _is_old(str(row["case_id"]), row.get("question_hash") or "", row.get("versions") or {}, now)
    ]
    for number in old:
        line, row = found[number]
        if row.get("output") is None and row.get("error") is None:
            why = "its scores are of other versions of the judges" if row.get("versions") else "it names no versions"
            raise BadFile(f"{path}:{line}: output: there is none to judge again, and {why}; run the baseline anew")
    held = await stored_traces([found[number][1] for number in old], traces)
    asked = []
    for number in old:
        row = found[number][1]
        answer = held.get(trace_of_row(row), {}) | {"output": row.get("output")}
        case = known[str(row["case_id"])]
        asked.append((case, Generated(case.id, row["sample"], answer, kept=True)))
    failed = [bool(found[number][1].get("error") is not None) for number in old]
    answered = [one for one, wrong in zip(asked, failed, strict=True) if not wrong]
    given = {(one.case_id, one.sample): one for _, one in answered}

    async def asking(some: Sequence[Numbered]) -> list[Callable[[], Awaitable[Generated]]]:
        return [partial(_given, given[case.id, sample]) for case, sample in some]

    scored = iter(await rubric.score([(case, one.sample) for case, one in answered], asking, scorer, spend))
    rows, left = [dict(row) for _, row in found], 0
    for number, wrong in zip(old, failed, strict=True):
        rows[number]["versions"] = now[str(rows[number]["case_id"])][1]
        if not wrong:
            made = next(scored)
            rows[number] |= {"scores": made.scores, "reasons": made.reasons}
            left += len(made.left)
    return JudgedAgain(rows, len(answered), left)


def _is_old(
    case_id: str, question: str, versions: Mapping[str, str], now: Mapping[str, tuple[str, Mapping[str, str]]]
) -> bool:
    asked, current = now.get(case_id, (None, versions))
    return asked is not None and question in ("", asked) and versions != current


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
