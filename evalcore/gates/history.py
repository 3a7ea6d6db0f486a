"""Indexes published verdicts for what gates ask of them (PC5 §5.2, §5.5; contracts §3). Pure.

Verdicts about a step belong to one agent definition, id and version: a new definition begins without any, and those of
the old one stay readable. A judge's scores, which make its rolling baseline, belong to one agent across its versions: a
regression is measured against the version before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator, Mapping
from itertools import islice
from math import isfinite
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from evalcore.gates.limits import ROLLING
from schemas.verdicts import VerdictLevel

Record = Mapping[str, Any]
"""A verdict as its topic has it."""
ASKED_BY: Final = ("experiment_id", "agent_id", "agent_version")
STEP: Final = (*ASKED_BY, "from_percent", "to_percent")
NO_VERDICT: Final = (KeyError, TypeError, ValueError, AttributeError)
"""Errors that a record of another form raises."""
_DECIDED_AT: Final = itemgetter(0)
"""Returns when a run or an entry was decided."""


class Line(NamedTuple):
    """What two scores of a judge must share to be compared. `vertical` is None for a request that names none,
    `dataset_version` "" where no dataset took part; `scope` says whose traces were sampled."""

    judge: str
    judge_version: str
    milestone: str
    agent_id: str
    vertical: str | None
    dataset_version: str
    scope: str


class Run(NamedTuple):
    """A judge's score at a gate that did not fail; `decided_at` in ISO 8601, by which runs are sorted."""

    decided_at: str
    request_id: str
    score: float


class Entry(NamedTuple):
    """What the history keeps of a verdict; `words` are its values of ASKED_BY."""

    decided_at: str
    request_id: str
    verdict_id: str
    words: tuple[str | None, ...]


KeyT = TypeVar("KeyT", bound=Hashable)
KeptT = TypeVar("KeptT", Entry, Run)


class History:
    """`add` each request once; `drop` what `add` was given. The latest is who was decided last, of equals who came
    last."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, list[Entry]] = {}
        self._runs: dict[Line, list[Run]] = {}

    def add(self, verdict: Record) -> None:
        """Adds a verdict. Raises one of NO_VERDICT, and keeps nothing, where the record is none."""
        entry, keys, runs = _entry(verdict), dict.fromkeys(_keys(verdict)), [*runs_of(verdict)]
        for key in keys:
            insort(self._entries.setdefault(key, []), entry, key=_DECIDED_AT)
        for line, run in runs:
            insort(self._runs.setdefault(line, []), run, key=_DECIDED_AT)

    def drop(self, verdict: Record) -> None:
        entry = _entry(verdict)
        for key in _keys(verdict):
            _remove(self._entries, key, entry)
        for line, run in runs_of(verdict):
            _remove(self._runs, line, run)

    def baseline(self, line: Line, besides: str) -> list[float]:
        """Returns the last scores of the line, oldest first, without those of the request `besides`: a gate is never
        compared with itself."""
        others = (run.score for run in reversed(self._runs.get(line, [])) if run.request_id != besides)
        return [*islice(others, ROLLING)][::-1]

    def previous(self, step: Record, besides: str) -> str | None:
        """Returns the id of the latest verdict about the same step of the same definition, without those of the request
        `besides`; None where there is none."""
        about = reversed(self._entries.get(_step(step), []))
        return next((entry.verdict_id for entry in about if entry.request_id != besides), None)

    def about(self, wanted: Mapping[str, str], most: int) -> list[str]:
        """Returns the requests whose verdicts have all these values, newest first, `most` of them. `wanted` has at
        least one name of ASKED_BY."""
        narrowest = min((self._entries.get(pair, []) for pair in wanted.items()), key=len)
        words = [(ASKED_BY.index(name), word) for name, word in wanted.items()]
        fitting = (entry for entry in reversed(narrowest) if all(entry.words[place] == word for place, word in words))
        return [entry.request_id for entry in islice(fitting, most)]


def runs_of(verdict: Record) -> Iterator[tuple[Line, Run]]:
    """Yields each judge's score of each gate that did not fail (a warning is no failure), if every item has a score: an
    unscored item counts at its worst, which is no baseline. The same holds for runs on main
    (`evalcore.gates.baselines`)."""
    agent, sample = verdict.get("agent_id"), verdict.get("sample")
    if not agent or not sample:
        return
    for gate in verdict.get("gates", ()):
        if gate["verdict"] == VerdictLevel.FAIL:
            continue
        facts = gate.get("sample") or sample
        for judge, score in gate["per_judge_scores"].items():
            if score["score"] is None or not isfinite(score["score"]) or score["unscored"]:
                continue
            line = Line(
                judge, score["judge_version"], gate["milestone"], agent, verdict.get("vertical"),
                facts.get("dataset_version") or "", facts["scope"],
            )  # fmt: skip
            yield line, Run(_decided_at(verdict), verdict["request_id"], float(score["score"]))


def _entry(verdict: Record) -> Entry:
    request_id = verdict["request_id"]
    if not isinstance(request_id, str):
        raise TypeError("request_id: a text is needed")
    words = tuple(verdict.get(name) for name in ASKED_BY)
    return Entry(_decided_at(verdict), request_id, str(verdict["verdict_id"]), words)


def _keys(verdict: Record) -> Iterator[Hashable]:
    yield _step(verdict)
    yield from ((name, verdict.get(name)) for name in ASKED_BY)


def _step(record: Record) -> Hashable:
    return tuple(record.get(name) for name in STEP)


def _decided_at(verdict: Record) -> str:
    return str(verdict["evidence"]["decided_at"])


def _remove(lists: dict[KeyT, list[KeptT]], key: KeyT, item: KeptT) -> None:
    kept = lists[key]
    del kept[kept.index(item, bisect_left(kept, item[0], key=_DECIDED_AT))]
    if not kept:
        del lists[key]
