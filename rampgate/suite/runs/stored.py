"""Keeps a suite's runs in its store: what was asked, what was decided and what it cost, with the results.

The baseline is main's last run that passed. Like all of the store a run bears its seal: a job without the secret of
trusted jobs can put in no run that they take for main's.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

import orjson

from agents.ports import Unavailable
from rampgate.console import Failure, run
from rampgate.files import replace_file, writing
from rampgate.progress import duration
from rampgate.store.sealed import SealedStore

MAIN: Final = "main"
PASSED: Final = ("pass", "warn")
INCOMPLETE: Final = "incomplete"
LARGEST_RECORD: Final = 1 << 20
LARGEST_RESULTS: Final = 512 << 20
DAY: Final = 86_400
HASH: Final = re.compile(r"[0-9a-f]{6,64}")
"""The beginning of a run's hash."""
SHOWN: Final = 5
LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class StoredRun:
    """One run. `at` is when it ended, as ISO 8601 in UTC; `commit` the one that CI names; `set` smoke or full; `judges`
    the version of each; `results` the hash of its file. `calls` are those of judges, of which `priced` cost
    `dollars`; `asked` answers of the candidate cost `answer_dollars`, as far as it tells, and `kept` were there before.
    Of `judged` answers of judges `judged_kept` took no call. `seconds` is from its start to its verdict, `only` the
    half that it was, `against` the configuration of the stored baseline that it was compared with, `lost` how many of
    its cases lost their score. None where a run of an earlier release does not tell."""

    suite: str
    at: str
    label: str
    verdict: str
    set: str
    configuration: str
    results: str
    commit: str = ""
    judges: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0
    priced: int = 0
    dollars: float = 0.0
    asked: int = 0
    answer_dollars: float = 0.0
    kept: int | None = None
    judged: int | None = None
    judged_kept: int | None = None
    seconds: float | None = None
    only: str = ""
    against: str = ""
    lost: int = 0

    @property
    def passed(self) -> bool:
        """Whether later runs may be compared with it: it passed and lost no case."""
        return self.verdict in PASSED and not self.lost

    def age(self, now: datetime) -> str:
        """How long ago it was, as a person says it."""
        seconds = max((now - datetime.fromisoformat(self.at)).total_seconds(), 0.0)
        return duration(seconds) if seconds < 2 * DAY else f"{seconds / DAY:.0f} days"


KNOWN: Final = tuple(one.name for one in fields(StoredRun))
"""Fields that a run of another release may have beside are passed over."""


class StoredRuns:
    """The runs of one store. Its methods raise Unavailable."""

    def __init__(self, store: SealedStore) -> None:
        self._runs = store.kind("runs", LARGEST_RECORD)
        self._results = store.kind("results", LARGEST_RESULTS)

    async def add(self, run: StoredRun, results: bytes) -> None:
        """Keep the run, its results first."""
        await self._results.put(run.results, zlib.compress(results, 6))
        await self._runs.put(f"{run.suite}:{run.at}:{run.results[:16]}", orjson.dumps(asdict(run)))

    async def of(self, suite: str) -> list[StoredRun]:
        """The suite's runs, the oldest first."""
        return list((await self.by_key(f"{suite}:")).values())

    async def by_key(self, start: str = "") -> dict[str, StoredRun]:
        """The runs whose key begins so, by it: of all suites without one."""
        found = {key: orjson.loads(value) for key, value in (await self._runs.under(start)).items()}
        return {key: StoredRun(**{name: one[name] for name in KNOWN if name in one}) for key, one in found.items()}

    async def last_passed(self, suite: str, label: str, *, smoke: bool) -> tuple[StoredRun, bytes] | None:
        """The label's last run that passed and lost no case, with its results; a full one can only be compared with a
        full one."""
        for one in reversed(await self.of(suite)):
            fits = one.label == label and one.passed and (smoke or one.set == "full")
            if fits and (results := await self.results(one)) is not None:
                return one, results
        return None

    async def by_hash(self, suite: str, start: str) -> tuple[StoredRun, bytes] | None:
        """The last run whose results' hash begins so, with its results; None also where several hashes do."""
        found = [run for run in await self.of(suite) if run.results.startswith(start)]
        if len({run.results for run in found}) != 1 or (results := await self.results(found[-1])) is None:
            return None
        return found[-1], results

    async def results(self, run: StoredRun) -> bytes | None:
        """The run's results, None where they are gone."""
        (held,) = await self._results.get_many([run.results])
        return zlib.decompress(held) if held is not None else None


def hash_of(results: bytes) -> str:
    return hashlib.sha256(results).hexdigest()


def check_label(label: str) -> None:
    """Raises Failure for a label by which its run could not be named."""
    if label and (not LABEL.fullmatch(label) or HASH.fullmatch(label)):
        raise Failure(
            f"--label {label[:100]!r}: letters, digits and ._/- are required, 100 at most, and not six or more "
            "hexadecimal digits alone, which name a run by its hash"
        )


def named_run(told: str, store: SealedStore, suite: str, home: Path, *, smoke: bool) -> tuple[Path, StoredRun | None]:
    """Returns the file, or the stored run's results, written into `home`, with the run. A label names the last run with
    it that passed, a hash's beginning (6 digits or more) the run with these results. Raises Failure."""
    if not told.strip():
        raise Failure("a run is named by its file, its label or the beginning of its hash, and here the name is empty")
    if Path(told).is_file():
        return Path(told), None
    runs = StoredRuns(store)
    try:
        found = run(partial(runs.last_passed, suite, told, smoke=smoke))
        if found is None and HASH.fullmatch(told):
            found = run(partial(runs.by_hash, suite, told))
        if found is None:
            known = run(partial(runs.of, suite))[-SHOWN:]
    except Unavailable as error:
        raise Failure(f"{told}: the store can't be read: {error}") from error
    if found is None:
        last = "; ".join(f"{one.results[:12]} ({one.label or 'no label'}, {one.verdict}, {one.at})" for one in known)
        raise Failure(
            f"{told[:200]}: no file, no label of a run of {suite} that passed, and no run's hash; "
            + (f"the last ones are {last}" if known else "its store has no run")
        )
    stored, results = found
    return written(home, stored, results), stored


def written(home: Path, stored: StoredRun, results: bytes) -> Path:
    """The file that these results are written to. Raises Failure."""
    file = home / f"run-{stored.results[:12]}.jsonl"
    with writing(file):
        home.mkdir(parents=True, exist_ok=True)
        replace_file(file, results)
    return file
