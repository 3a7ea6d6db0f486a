"""The ledger of samples can fail: what a verdict leaves out, doubles or makes up is a difference that it names."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from evalcore.scoring.sampling import fingerprint
from tests.fault.ledger.kafka_log import Record
from tests.fault.ledger.samples import sample_differences

NOW = 1_800_000_000
VERSION = "v-1"


def at(seconds: float) -> str:
    return datetime.fromtimestamp(NOW + seconds, UTC).isoformat()


def trace(turn: str, ended: float | None, *, name: str = "", version: str = VERSION, **metadata: str) -> dict[str, Any]:
    began = (ended if ended is not None else -7_200.0) - 5.0
    return {
        "event_id": "e", "trace_id": name or f"trace-{turn}", "response_id": turn, "project_name": "p",
        "started_at": at(began), "ended_at": None if ended is None else at(ended),
        "metadata": {"agent_version": version, "vertical": "shop", **metadata},
    }  # fmt: skip


def thumb(turn: str, value: str | None, sequence: int = 1) -> dict[str, Any]:
    return {
        "event_id": f"{turn}/{sequence}", "response_id": turn, "value": value, "occurred_at": at(0),
        "sequence": str(sequence),
    }  # fmt: skip


TRACES = [
    *(trace(f"r{number}", -60.0 - number) for number in range(8)),
    trace("twice", -900.0, name="first"), trace("twice", -500.0, name="last"), trace("twice", -700.0, name="middle"),
    trace("never", None), trace("begun", None), trace("begun", -30.0), trace("old", -90_000.0),
    trace("long", -40.0, category="c" * 129), trace("other", -40.0, version="v-2"),
]  # fmt: skip
"""Nine turns are pooled, one never ended, one has a bad record; one ended before the window, one is another's."""
THUMBS = [thumb("r0", "down"), thumb("r1", "up"), thumb("r1", None, 2), thumb("never", "down"), thumb("other", "up")]
REQUEST = {
    "request_id": "closing-1", "agent_version": VERSION, "vertical": "shop", "from_percent": 0, "to_percent": 5,
}  # fmt: skip


def records(topic: str, contents: list[dict[str, Any]], sent: int) -> list[Record]:
    values = [json.dumps(one).encode() for one in contents]
    return [Record(topic, 0, offset, b"k", value, (), sent) for offset, value in enumerate(values)]


@dataclass
class Run:
    """A run as it must be, and what a test changes of it."""

    sample: dict[str, Any] = field(
        default_factory=lambda: {
            "size": 10, "window_seconds": 86_400, "frozen_at": at(0), "eligible": 12, "pooled": 10,
            "left_out": {"not_ended": 1, "dead_lettered": 1},
            "signals": {"rated": {"eligible": 2, "sampled": 1}, "rerolled": {"eligible": 0, "sampled": 0}},
        }
    )  # fmt: skip
    shown: list[tuple[str, str]] = field(
        default_factory=lambda: [
            *((f"r{number}", f"trace-r{number}") for number in range(8)), ("twice", "last"), ("begun", "trace-begun"),
        ]
    )  # fmt: skip

    draws: list[list[tuple[str, str]]] = field(default_factory=list)
    """What judges were shown in each try; without any, `shown` in one. The verdict is of `shown`."""

    def differences(self, *, drawn_again: bool = False) -> list[str]:
        log = records("traces", TRACES, 1) + records("thumbs", THUMBS, 1) + records("ramp-steps", [REQUEST], 2)
        log += records("traces", [trace("later", -1.0)], 3)
        events = [
            {"source": "gate", "request_id": "closing-1", "event_id": f"{judge}/{turn}/{one}", "response_id": turn,
             "trace_id": one, "at": at(1 + try_)}
            for try_, draw in enumerate(self.draws or [self.shown]) for turn, one in draw for judge in ("a", "b")
        ]  # fmt: skip
        sample = self.sample and {
            "fingerprint": fingerprint(name.replace("-", "") for _, name in self.shown),
            **self.sample,
        }
        verdict = {"request_id": "closing-1", "sample": sample}
        verdicts, scores = records("verdicts", [verdict], 4), records("judge-scores", events, 4)
        return list(sample_differences(log, verdicts, scores, drawn_again=drawn_again))


def test_a_sample_as_it_must_be_has_no_difference() -> None:
    assert Run().differences() == []


def test_a_verdict_that_says_nothing_of_what_is_eligible_is_a_difference() -> None:
    run = Run()
    del run.sample["eligible"]
    assert "does not say" in run.differences()[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"eligible": 11}, "eligible 11 is not pooled 10"),
        ({"pooled": 9, "eligible": 11, "size": 9}, "pooled and beyond are (9, 0), must be (10, 0)"),
        ({"size": 9}, "its size is 9, must be 10"),
        ({"size": 11}, "its size is 11, and 10 are pooled"),
        ({"left_out": {"not_ended": 2}}, "2 are said not to have ended"),
        ({"left_out": {"not_ended": 1, "record_not_come": 1}}, ""),
        ({"left_out": {"not_ended": 1}, "eligible": 11}, "1 turns have a bad record alone"),
        ({"left_out": {"not_ended": 1, "dead_lettered": 1, "lost": 0}}, "left out for ['lost']"),
        ({"signals": {"rated": {"eligible": 0, "sampled": 1}, "rerolled": {"eligible": 0, "sampled": 0}}}, "rated, el"),
        ({"signals": {"rated": {"eligible": 2, "sampled": 0}, "rerolled": {"eligible": 0, "sampled": 0}}}, "rated, sa"),
        ({"signals": {"rated": {"eligible": 2, "sampled": 1}, "rerolled": {"eligible": 1, "sampled": 0}}}, "rerolled"),
    ],
)
def test_a_figure_that_is_not_so_is_a_difference(change: dict[str, Any], says: str) -> None:
    run = Run()
    run.sample |= change
    found = run.differences()
    assert bool(found) == bool(says)
    assert not says or any(says in line for line in found), found


@pytest.mark.parametrize(
    ("shown", "says"),
    [
        ([("twice", "first")], "1 traces that do not count"),
        ([("other", "trace-other")], "1 traces that do not count"),
        ([("old", "trace-old")], "1 traces that do not count"),
        ([("twice", "first"), ("twice", "last")], "1 turns were shown by several traces"),
        ([], "judges were shown 9 items"),
    ],
)
def test_what_judges_were_shown_wrongly_is_a_difference(shown: list[tuple[str, str]], says: str) -> None:
    """In the place of the turn of several traces."""
    run = Run()
    run.shown = [one for one in run.shown if one[0] != "twice"] + shown
    assert any(says in line for line in run.differences()), run.differences()


def test_judges_may_be_shown_the_sample_twice_and_another_one_only_where_the_store_lost_the_first() -> None:
    run = Run()
    run.draws = [run.shown, run.shown]
    assert run.differences() == []
    run.draws = [[*run.shown, ("r9", "trace-r9")], run.shown]
    assert run.differences() == ["closing-1: judges were shown 1 items that are not in the sample"]
    assert run.differences(drawn_again=True) == []


def test_judges_were_shown_the_verdicts_sample_whole_also_where_the_store_lost_the_first() -> None:
    run = Run()
    run.draws = [[*run.shown[:-1], ("r9", "trace-r9")], run.shown[1:]]
    found = run.differences(drawn_again=True)
    assert found[0] == "closing-1: judges were shown [10, 9] items, and none of these is the sample"


def test_a_closing_request_without_a_sample_is_a_difference() -> None:
    run = Run()
    run.sample = None  # type: ignore[assignment]
    assert run.differences() == ["closing-1: the verdict has no sample"]
