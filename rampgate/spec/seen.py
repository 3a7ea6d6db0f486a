"""Reads the last run of `rampgate spec test` from the store: `save` and `export-metrics` ask no agent and no model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from evalcore.specs.results import QueryResult
from rampgate.console import Failure, run
from rampgate.spec.outcomes import Outcome, outcome_of, result_of
from rampgate.suite.generation import LARGEST_ANSWER
from rampgate.suite.runs.judged_again import trace_of_row
from rampgate.suite.runs.stored import StoredRun, StoredRuns

if TYPE_CHECKING:
    from rampgate.store.sealed import SealedStore
    from rampgate.suite.opened import Opened


@dataclass(frozen=True)
class SeenAnswer:
    """An answer with its result, by the spec of the hash `spec`. `trace` is None where the agent gave none, or the
    store has lost it."""

    result: QueryResult
    spec: str
    trace: Mapping[str, Any] | None


@dataclass(frozen=True)
class SeenRun:
    """A run, with the answers to each query by its id."""

    stored: StoredRun
    answers: Mapping[str, list[SeenAnswer]]

    @property
    def outcomes(self) -> list[Outcome]:
        return [outcome_of([one.result for one in some]) for some in self.answers.values()]


def last_seen(opened: Opened) -> SeenRun:
    """Returns the last run of `spec test`. Raises Failure where the store has none, or can't be read."""
    name = opened.suite.file.suite
    remedy = "`rampgate spec test` makes one; give the --store that it had"
    if not opened.place.exists:
        raise Failure(f"{opened.place.where}: no run of the spec is there; {remedy}")
    with closing(opened.place.opened()) as store:
        found = run(lambda: _last(store, name))
    if found is None:
        raise Failure(f"the store has no run of the spec of {opened.suite.file.agent}; {remedy}")
    return found


async def _last(store: SealedStore, suite: str) -> SeenRun | None:
    runs = StoredRuns(store)
    for stored in reversed(await runs.of(suite)):
        rows = [orjson.loads(line) for line in (await runs.results(stored) or b"").splitlines()]
        if rows and all("layers" in row for row in rows):  # `suite run` judges no layers
            return SeenRun(stored, await _answers(store, rows))
    return None


async def _answers(store: SealedStore, rows: list[dict[str, Any]]) -> dict[str, list[SeenAnswer]]:
    names = sorted({name for row in rows if (name := trace_of_row(row))})
    held = await store.kind("traces", 2 * LARGEST_ANSWER).get_many(names)
    traces = {name: orjson.loads(value) for name, value in zip(names, held, strict=True) if value is not None}
    found: dict[str, list[SeenAnswer]] = {}
    for row in rows:
        result = result_of(row["case_id"], row["query"], row["layers"])
        found.setdefault(result.id, []).append(SeenAnswer(result, row["spec"], traces.get(trace_of_row(row))))
    return found
