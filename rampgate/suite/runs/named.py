"""Finds a run that a command names: a file of results, or a run in a suite's store."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Final

from agents.ports import Unavailable
from rampgate.console import Failure, run
from rampgate.files import replace_file, writing
from rampgate.store.sealed import SealedStore
from rampgate.suite.runs.stored import StoredRun, StoredRuns

HASH: Final = re.compile(r"[0-9a-f]{6,64}")
"""The beginning of a run's hash."""
SHOWN: Final = 5
LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}", re.ASCII)


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
