"""Writes a comparison's reports by the ending of their names, and the texts of the traces that a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from agents.ports import Unavailable
from rampgate.console import Failure, run
from rampgate.files import replacing
from rampgate.report.files import PAGES, write
from rampgate.store.place import Place
from rampgate.suite.generation import LARGEST_ANSWER
from rampgate.suite.report.ci import comparison_junit
from rampgate.suite.report.comparison import Told, comparison_report


def write_reports(paths: Sequence[Path], told: Told, name: str, place: Place, whole: Any = None) -> None:
    """Write each: .json is the command's document, `whole`, .xml JUnit, .html a page, any other name Markdown at the
    file's end, as to a job's summary. `place` is the store in which traces are. Raises Failure."""
    for path in paths:
        kind = path.suffix.lower()
        if kind == ".json":
            replace_report(path, orjson.dumps(whole or told, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        elif kind == ".xml":
            replace_report(path, comparison_junit(told, name, whole or {}))
        else:
            held = stored_traces(told, place) if kind in PAGES else {}
            write(path, comparison_report(told, name, held, whole or {}))


def stored_traces(told: Told, place: Place) -> dict[str, str]:
    """The traces of the cases that fell, by their hashes: those that the store has, where there is one."""
    both = ("baseline_sample", "candidate_sample")
    named = list(dict.fromkeys(one[side]["trace"] for one in told["flipped"] for side in both if one[side]["trace"]))
    hashes = [one for one in named if len(one) == 64 and one.isalnum()]
    if not hashes or not place.exists:
        return {}
    try:
        store = place.opened()
        try:
            found = run(partial(store.kind("traces", 2 * LARGEST_ANSWER).get_many, hashes))
        finally:
            store.close()
    except Unavailable:
        return {}  # a report without its traces tells more than none
    return {name: _readable(text) for name, text in zip(hashes, found, strict=True) if text is not None}


def _readable(trace: bytes) -> str:
    """With the lines of its texts as lines."""
    return orjson.dumps(orjson.loads(trace), option=orjson.OPT_INDENT_2).decode().replace("\\n", "\n")


def replace_report(path: Path, content: bytes) -> None:
    """Raises Failure."""
    try:
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        raise Failure(f"--report {path}: can't be written: {error.strerror or error}") from error
