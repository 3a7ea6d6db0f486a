"""Reads the stored traces that a page shows beside the cases that fell."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import orjson

from agents.ports import Unavailable
from rampgate.console import run
from rampgate.store.place import Place
from rampgate.suite.generation import LARGEST_ANSWER
from rampgate.suite.report.comparison import Told


def stored_traces(told: Told | None, place: Place, paths: Sequence[Path]) -> dict[str, str]:
    """The traces of the cases that fell in a comparison, by their hashes: those that the store has, where there is one,
    and a page is among the reports."""
    if told is None or not paths:
        return {}
    from rampgate.report.files import PAGES

    if not any(path.suffix.lower() in PAGES for path in paths):
        return {}
    both = ("baseline_sample", "candidate_sample")
    named = list(dict.fromkeys(one[side]["trace"] for one in told["flipped"] for side in both if one[side]["trace"]))
    hashes = [one for one in named if len(one) == 64 and one.isalnum()]
    if not hashes or not place.exists:
        return {}
    try:
        with closing(place.opened()) as store:
            found = run(partial(store.kind("traces", 2 * LARGEST_ANSWER).get_many, hashes))
    except Unavailable:
        return {}  # a report without its traces says more than none
    return {name: _readable(text) for name, text in zip(hashes, found, strict=True) if text is not None}


def _readable(trace: bytes) -> str:
    """With the lines of its texts as lines."""
    return orjson.dumps(orjson.loads(trace), option=orjson.OPT_INDENT_2).decode().replace("\\n", "\n")
