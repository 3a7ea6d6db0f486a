"""Says what of a suite's store is still needed, by what its runs name.

Main's last run of each set that passed is the baseline: it stays with its results, its answers and their traces,
however old it is. Any other run stays as long as it is young, with its results and the traces that its reports show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

import orjson

from rampgate.store.sealed import Kept, SealedStore
from rampgate.suite.generation import LARGEST_ANSWER, Wanted, key_of
from rampgate.suite.runs.judged_again import trace_of_row
from rampgate.suite.runs.stored import DAY, MAIN, PASSED, StoredRun, StoredRuns

T = TypeVar("T")
PAGE: Final = 200
"""Values that are read at once; a trace may have megabytes."""


@dataclass(frozen=True)
class Needed:
    """`names` stay. `baselines` are the runs that stay whatever their age; `going` the names of runs that do not
    stay."""

    names: frozenset[str]
    baselines: Sequence[StoredRun]
    going: Sequence[str]


async def needed(store: SealedStore, suite: str, before: int) -> Needed:
    """What stays where the suite's runs of days before that one go. Runs of other suites in the store stay. Raises
    Unavailable."""
    runs = StoredRuns(store)
    known = await runs.by_key()
    baselines = await _baselines(runs, known)
    going = {key for key, one in known.items() if one.suite == suite and _day(one) < before and key not in baselines}
    staying = {key: one for key, one in known.items() if key not in going}
    names = {f"runs:{key}" for key in staying} | {f"results:{one.results}" for one in staying.values()}
    traces = store.kind("traces", 2 * LARGEST_ANSWER)
    for key, one in staying.items():
        rows = _rows(await runs.results(one))
        names |= {f"traces:{trace}" for row in rows if (trace := trace_of_row(row))}
        if key in baselines:
            names |= {f"answers:{answer}" for answer in await _answers(one, rows, traces)}
    return Needed(frozenset(names), list(baselines.values()), [f"runs:{key}" for key in sorted(going)])


async def without_owner(traces: Sequence[str], answers: Sequence[str], store: SealedStore) -> list[str]:
    """Those of the traces that none of these answers has. Names of values. Raises Unavailable."""
    owned: set[str] = set()
    kept = store.kind("answers", LARGEST_ANSWER)
    for some in _pages([name.partition(":")[2] for name in answers]):
        owned |= {f"traces:{_trace(value)}" for value in await kept.get_many(some) if value is not None}
    return [name for name in traces if name not in owned]


async def _baselines(runs: StoredRuns, known: dict[str, StoredRun]) -> dict[str, StoredRun]:
    """Of each suite main's last run of each set that passed and has its results."""
    found: dict[tuple[str, str], str] = {}
    for key, one in reversed(known.items()):
        place = one.suite, one.set
        if place in found or one.label != MAIN or one.verdict not in PASSED or await runs.results(one) is None:
            continue
        found[place] = key
    return {key: known[key] for key in found.values()}


async def _answers(one: StoredRun, rows: Sequence[Mapping[str, Any]], traces: Kept) -> list[str]:
    """The keys of the answers that the run's results are made of: its traces know what was asked."""
    found = []
    for some in _pages(rows):
        held = await traces.get_many([trace_of_row(row) for row in some])
        for row, value in zip(some, held, strict=True):
            case = orjson.loads(value).get("case") if value is not None else None
            if isinstance(case, Mapping):
                found.append(key_of(one.configuration, Wanted(str(row["case_id"]), row["sample"], case)))
    return found


def _rows(results: bytes | None) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (results or b"").splitlines() if line.strip()]


def _trace(value: bytes) -> str:
    """The trace that an answer names, empty where it names none."""
    try:
        return str(orjson.loads(value)["trace"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""


def _day(one: StoredRun) -> int:
    return int(datetime.fromisoformat(one.at).timestamp() // DAY)


def _pages(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[first : first + PAGE] for first in range(0, len(values), PAGE))
