"""Indexes published verdicts for what gates ask of them (PC5 §5.2, §5.5; contracts §3), and shares out the memory of
them among those who asked. Pure.

Verdicts about a step belong to one agent definition, id and version: a new definition begins without any, and those of
the old one stay readable. A judge's scores, which make its rolling baseline, belong to one agent across its versions: a
regression is measured against the version before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from math import isfinite
from operator import itemgetter
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

from evalcore.gates.limits import PastRun
from schemas.manifests import ROLLING
from schemas.verdicts import VerdictLevel

Record = Mapping[str, Any]
"""A verdict as its topic has it."""
ASKED_BY: Final = ("experiment_id", "agent_id", "agent_version")
STEP: Final = (*ASKED_BY, "from_percent", "to_percent")
NO_VERDICT: Final = (KeyError, TypeError, ValueError, AttributeError)
"""Errors that a record of another form raises."""
STANDS: Final = 20_000
"""Gates of agent definitions that passed, and as many that only failed, shared out fairly beyond that."""
LINES: Final = 20_000
"""Lines whose runs are kept; beyond that the line goes whose last run is the oldest."""
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
    """What a judge came to at a gate that did not fail; `decided_at` in ISO 8601, by which runs are sorted."""

    decided_at: str
    request_id: str
    past: PastRun


class Entry(NamedTuple):
    """What the history keeps of a verdict; `words` are its values of ASKED_BY."""

    decided_at: str
    request_id: str
    verdict_id: str
    words: tuple[str | None, ...]


class Stand(NamedTuple):
    """When an agent definition last passed a gate, and when it last failed it, in ISO 8601; "" for never. A warning is
    a pass. Later verdicts supersede earlier ones: only a pass that no failure followed stands."""

    passed: str = ""
    failed: str = ""

    @property
    def passes(self) -> bool:
        return self.passed > self.failed

    @property
    def fails(self) -> bool:
        return bool(self.failed) and not self.passes


class Asked(NamedTuple):
    """What was asked, and the place of the record that asked, as digests: 200,000 of them take 40 MB."""

    body: bytes
    place: bytes

    @classmethod
    def of(cls, body: str, place: str) -> Self:
        return cls(digest(body, 8), digest(place, 8))


ValueT = TypeVar("ValueT")


class FairMemory(Generic[ValueT]):
    """Remembers at least the last `room` values. Beyond that each agent keeps an equal share of the room, and within it
    each experiment: whoever floods it makes it forget of its own alone."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._values: dict[Hashable, tuple[tuple[str, str], ValueT]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> ValueT | None:
        held = self._values.get(key)
        return held[1] if held is not None else None

    def put(self, key: Hashable, value: ValueT, verdict: Record) -> list[ValueT]:
        """Remembers a value, and who asked for the verdict that it is about. Returns what is forgotten for it."""
        asker = f"{verdict.get('agent_id')}/{verdict.get('vertical')}", str(verdict.get("experiment_id"))
        self._values[key] = asker, value
        if len(self._values) <= self._room + self._room // 20:  # in one go, since it looks at all there is
            return []
        over = self._over()
        forgotten = []
        for key, (asker, value) in list(self._values.items()):
            if over[asker]:
                over[asker] -= 1
                del self._values[key]
                forgotten.append(value)
        return forgotten

    def _over(self) -> Counter[tuple[str, str]]:
        """How many values of each asker are beyond its share."""
        held: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for (agent, experiment), _ in self._values.values():
            held[agent][experiment] += 1
        over: Counter[tuple[str, str]] = Counter()
        for agent, room in shares({agent: counts.total() for agent, counts in held.items()}, self._room).items():
            for experiment, share in shares(held[agent], room).items():
                over[agent, experiment] = held[agent][experiment] - share
        return over


NameT = TypeVar("NameT", bound=Hashable)


def shares(wanted: Mapping[NameT, int], room: int) -> dict[NameT, int]:
    """Divides the room: no one gets more than wanted, and one that gets less gets as much as any other, or one less.
    Of those who want the same, the later ones get that one."""
    given: dict[NameT, int] = {}
    for place, (name, most) in enumerate(sorted(wanted.items(), key=itemgetter(1))):
        given[name] = min(most, room // (len(wanted) - place))
        room -= given[name]
    return given


def digest(text: str, size: int) -> bytes:
    """A hash of so many bytes, of any text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest()


KeyT = TypeVar("KeyT", bound=Hashable)
KeptT = TypeVar("KeptT", Entry, Run)


class History:
    """`add` each request once; `drop` what `add` was given. The latest is who was decided last, of equals who came
    last.

    `drop` leaves runs alone: each line keeps its own last ones, so that no number of verdicts about anything else moves
    a baseline. So it does how definitions stand with gates. Only a gate that ran counts there: a refusal costs nothing,
    and takes nothing away. What only failed is kept apart, since failing is cheap as well.
    """

    def __init__(self) -> None:
        self._passed, self._failed = FairMemory[Stand](STANDS), FairMemory[Stand](STANDS)
        self._entries: dict[Hashable, list[Entry]] = {}
        self._runs: dict[Line, list[Run]] = {}

    def add(self, verdict: Record) -> None:
        """Adds a verdict. Raises one of NO_VERDICT, and keeps nothing, where the record is none."""
        entry, keys, runs = _entry(verdict), dict.fromkeys(_keys(verdict)), [*runs_of(verdict)]
        stood = {
            (verdict.get("agent_id"), verdict.get("agent_version"), gate["milestone"]): Stand(failed=entry.decided_at)
            if gate["verdict"] == VerdictLevel.FAIL
            else Stand(passed=entry.decided_at)
            for gate in verdict.get("gates", ())
        }
        for key in keys:
            insort(self._entries.setdefault(key, []), entry, key=_DECIDED_AT)
        for line, run in runs:
            kept = self._runs.setdefault(line, [])
            insort(kept, run, key=_DECIDED_AT)
            del kept[: -(ROLLING + 1)]  # one may be of the request itself, which is not compared with itself
        for gate, stand in stood.items():
            self._stood(gate, stand, verdict)
        if len(self._runs) > LINES:
            del self._runs[min(self._runs, key=lambda line: self._runs[line][-1].decided_at)]

    def _stood(self, key: tuple[str | None, ...], stood: Stand, verdict: Record) -> None:
        """Notes how a gate ended; verdicts come in any order."""
        known = Stand(*map(max, self._stand(key), stood))
        (self._passed if known.passed else self._failed).put(key, known, verdict)

    def _stand(self, key: tuple[str | None, ...]) -> Stand:
        return self._passed.get(key) or self._failed.get(key) or Stand()

    def stand(self, agent_id: str, agent_version: str, milestone: str) -> Stand:
        """Returns how an agent definition, an id and a version, stands with a gate (PC5 §5.5)."""
        return self._stand((agent_id, agent_version, milestone))

    def drop(self, verdict: Record) -> None:
        entry = _entry(verdict)
        for key in dict.fromkeys(_keys(verdict)):
            _remove(self._entries, key, entry)

    def baseline(self, line: Line, besides: str) -> list[PastRun]:
        """Returns the last runs of the line, oldest first, without those of the request `besides`: a gate is never
        compared with itself."""
        others = (run.past for run in reversed(self._runs.get(line, [])) if run.request_id != besides)
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
            # Verdicts of before have no error.
            past = PastRun(float(score["score"]), score.get("n") or None, score.get("error"))
            yield line, Run(_decided_at(verdict), verdict["request_id"], past)


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
