"""Verdicts that were published before, by what gates ask of them (PC5 §5.2, §5.5; contracts §3). Pure.

Two questions with two reaches. What was decided about a step is the history of one agent definition, id and version: a
new definition begins with none, and the old one's stays readable. What a judge came to before, its rolling baseline, is
of one agent across its versions: a regression is one against what went before.
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
"""A verdict as it stands on its topic."""
ASKED_BY: Final = ("experiment_id", "agent_id", "agent_version")
STEP: Final = (*ASKED_BY, "from_percent", "to_percent")
NO_VERDICT: Final = (KeyError, TypeError, ValueError, AttributeError)
"""Raised for a record that has another form."""
_DECIDED_AT: Final = itemgetter(0)
"""Of a run or an entry."""


class Line(NamedTuple):
    """What scores of a judge must share to be held against each other. `vertical` is None for a request that names
    none, `dataset_version` "" where no dataset took part; `scope` says whose traces were looked at."""

    judge: str
    judge_version: str
    milestone: str
    agent_id: str
    vertical: str | None
    dataset_version: str
    scope: str


class Run(NamedTuple):
    """A judge's score at a gate that did not fail; runs are in the order of when they were decided (ISO 8601)."""

    decided_at: str
    request_id: str
    score: float


class Entry(NamedTuple):
    """What is remembered of a verdict; `words` are those of ASKED_BY."""

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
        """Keeps nothing of what is no verdict: raises one of NO_VERDICT."""
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
        """The last runs of the line, oldest first, without those of the request `besides`: what a gate is held against
        is never its own."""
        others = (run.score for run in reversed(self._runs.get(line, [])) if run.request_id != besides)
        return [*islice(others, ROLLING)][::-1]

    def previous(self, step: Record, besides: str) -> str | None:
        """The id of the latest verdict about the same step of the same definition, `step` saying which."""
        about = reversed(self._entries.get(_step(step), []))
        return next((entry.verdict_id for entry in about if entry.request_id != besides), None)

    def about(self, wanted: Mapping[str, str], most: int) -> list[str]:
        """Requests whose verdicts have all these words, by names of ASKED_BY, at least one; newest first."""
        narrowest = min((self._entries.get(pair, []) for pair in wanted.items()), key=len)
        words = [(ASKED_BY.index(name), word) for name, word in wanted.items()]
        fitting = (one for one in reversed(narrowest) if all(one.words[place] == word for place, word in words))
        return [entry.request_id for entry in islice(fitting, most)]


def runs_of(verdict: Record) -> Iterator[tuple[Line, Run]]:
    """Of each gate that did not fail (a warning is no failure), each judge with a score for every item: what was not
    scored counted at its worst, which is no baseline. The same holds for runs on main (`evalcore.gates.baselines`)."""
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


def _step(said: Record) -> Hashable:
    return tuple(said.get(name) for name in STEP)


def _decided_at(verdict: Record) -> str:
    return str(verdict["evidence"]["decided_at"])


def _remove(lists: dict[KeyT, list[KeptT]], key: KeyT, one: KeptT) -> None:
    kept = lists[key]
    del kept[kept.index(one, bisect_left(kept, one[0], key=_DECIDED_AT))]
    if not kept:
        del lists[key]
