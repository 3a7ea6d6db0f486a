"""Has a suite's store forget what was not used for long, but never what a baseline is made of.

Main's last run of each set that passed is the baseline: it stays with its results, its answers and their traces,
however old it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson

from rampgate.store.sealed import Kept, SealedStore
from rampgate.suite.generation import LARGEST_ANSWER, Wanted, key_of
from rampgate.suite.runs.judged_again import trace_of_row
from rampgate.suite.runs.stored import MAIN, StoredRun, StoredRuns

PAGE: Final = 200
"""Traces that are read at once; one may have megabytes."""


async def forget(store: SealedStore) -> None:
    """Raises Unavailable."""
    await store.forget(partial(_needed, store))


async def _needed(store: SealedStore) -> list[str] | None:
    """The names of what baselines are made of, those of other suites among them. None where a run has no seal that we
    could check: it might be main's last. With the secret of trusted jobs what lacks its seal is no baseline."""
    runs, refused = StoredRuns(store), store.refused
    known = await runs.by_key()
    if store.refused > refused and not store.signed:
        return None
    traces = store.kind("traces", 2 * LARGEST_ANSWER)
    names, found = [], set[tuple[str, str]]()
    for key, one in reversed(known.items()):
        if (one.suite, one.set) in found or one.label != MAIN or not one.passed:
            continue
        if (results := await runs.results(one)) is None:
            continue
        found.add((one.suite, one.set))
        rows = [orjson.loads(line) for line in results.splitlines() if line.strip()]
        names += [f"runs:{key}", f"results:{one.results}", *(f"traces:{trace_of_row(row)}" for row in rows)]
        names += [f"answers:{answer}" for answer in await _answers(one, rows, traces)]
    return names


async def _answers(one: StoredRun, rows: Sequence[Mapping[str, Any]], traces: Kept) -> list[str]:
    """The keys of the answers that the run's results are made of: its traces know what was asked."""
    found = []
    for first in range(0, len(rows), PAGE):
        some = rows[first : first + PAGE]
        held = await traces.get_many([trace_of_row(row) for row in some])
        for row, value in zip(some, held, strict=True):
            case = orjson.loads(value).get("case") if value is not None else None
            if isinstance(case, Mapping):
                found.append(key_of(one.configuration, Wanted(str(row["case_id"]), row["sample"], case)))
    return found
