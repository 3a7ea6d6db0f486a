"""The oracle of samples can fail: whatever a verdict leaves out, doubles, mistakes or makes up is a difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.samples.oracle import Bounds, Expected, Judged, Told, differences, expected
from tests.samples.turns import Ask, Copy, Garbage, Post, Thumb, Trace, Traffic, Turn

HOUR, NOW = 3_600_000, 1_800_000_000_000
BOUNDS = Bounds(wanted=40, needed=20, window=3 * HOUR)
ASK = Ask(NOW, "v1", "pre_ramp", "shop")


def turn(name: str, *posts: Post, version: str = "v1", started: int = NOW - 120_000, **more: Any) -> Turn:
    return Turn(name, [Trace(f"trace-{name}", version, started, posts=list(posts))], **more)


def ended(output: str | None, ms: int = 60_000, **more: Any) -> Post:
    return Post(NOW - ms + 200, NOW - ms, output, **more)


def traffic(bad: int = 0, left_out: int = 1) -> Traffic:
    """Thirty turns of which the first are bad and rated down, and some whose record is a dead letter."""
    down = [Thumb(NOW - 50_000, -1)]
    made = [turn(f"r{n}", ended("bad" if n < bad else "good"), thumbs=down if n < bad else []) for n in range(30)]
    made += [turn(f"dead{n}", ended("good", fate="long category")) for n in range(left_out)]
    return Traffic(made)


def told(must: Expected, **changes: Any) -> Told:
    """What a verdict must say."""
    judged = [Judged(name, trace, output) for name, (trace, output) in must.pooled.items()]
    left: dict[str, int] = {}
    for reasons in must.left_out.values():
        left[min(reasons)] = left.get(min(reasons), 0) + 1
    rated, rerolled = len(must.rated & must.pooled.keys()), len(must.rerolled & must.pooled.keys())
    right = Told(
        "proceed", frozenset(), len(judged), len(must.pooled) + len(must.left_out), len(must.pooled), left,
        {"rated": (rated, rated), "rerolled": (rerolled, rerolled)}, judged,
    )  # fmt: skip
    return replace(right, **changes)


def wrong(must: Expected, **changes: Any) -> str:
    return "\n".join(differences(must, told(must, **changes), BOUNDS))


def of(made: Traffic) -> Expected:
    return expected(made, ASK, BOUNDS.window)


def test_what_is_as_it_must_be_has_no_difference() -> None:
    assert wrong(of(traffic())) == ""
    assert wrong(of(traffic(bad=12)), action="halt") == ""
    assert wrong(of(traffic(left_out=4)), action="halt", codes=frozenset(["sample_incomplete"])) == ""


@pytest.mark.parametrize(
    ("bad", "left_out", "changes", "says"),
    [
        (12, 0, {}, "a bad version passes"),
        (0, 1, {"action": "halt"}, "a good version fails"),
        (0, 4, {}, "is no sample_incomplete"),
        (0, 4, {"action": "halt"}, "is no sample_incomplete"),
        (0, 1, {"action": "halt", "codes": frozenset(["sample_incomplete"])}, "a complete sample is called incomplete"),
        (0, 1, {"size": 29}, "size is 29, must be 30"),
        (0, 1, {"judged": [Judged("r0", "trace-r0", "good")] * 30}, "judged more than once: 1 turns"),
        (0, 1, {"judged": [Judged("other", "t", "good")]}, "not the version's in the window: 1"),
        (0, 1, {"judged": [Judged("r0", "trace-r0", "bad")]}, "by another than the last answer: 1"),
        (0, 1, {"judged": [Judged("r0", "another", "good")]}, "by another than the last answer: 1"),
        (0, 1, {"eligible": None}, "says nothing of eligible"),
        (0, 1, {"eligible": 30}, "eligible 30 is not pooled 30"),
        (0, 1, {"eligible": 30, "left_out": {}}, "eligible is 30, must be 31"),
        (0, 1, {"pooled": 29, "eligible": 30}, "pooled is 29"),
        (0, 1, {"left_out": {"not_ended": 1}}, "dead_lettered is 0, must be from 1 to 1"),
        (0, 1, {"left_out": {"lost": 1}}, "reasons that there are not"),
        (0, 1, {"signals": None}, "nothing of its signals"),
        (12, 0, {"signals": {"rated": (11, 12), "rerolled": (0, 0)}}, "rated: 11 eligible"),
        (12, 0, {"signals": {"rated": (12, 11), "rerolled": (0, 0)}}, "rated: 11 sampled"),
    ],
)
def test_what_is_not_so_is_a_difference(bad: int, left_out: int, changes: dict[str, Any], says: str) -> None:
    assert says in wrong(of(traffic(bad, left_out)), **changes)


def test_of_a_turns_records_the_later_end_counts_then_the_later_record() -> None:
    posts = [ended("good", 70_000), ended(None), Post(NOW - 59_000, NOW - 60_000, "bad"), Post(NOW, None, "good")]
    must = of(Traffic([turn("r", *posts)]))
    assert must.pooled == {"r": ("trace-r", "bad")}
    assert must.bad_share == 1.0


def test_of_a_versions_traces_the_one_that_ended_last_counts_whatever_other_versions_did() -> None:
    one = turn("r", ended("bad", 70_000))
    one.traces.append(Trace("later", "v1", NOW - 80_000, posts=[ended("good")]))
    one.traces.append(Trace("shadow", "v2", NOW - 80_000, "shadow", posts=[ended("bad", 30_000)]))
    assert of(Traffic([one])).pooled == {"r": ("later", "good")}


@pytest.mark.parametrize(
    ("made", "reasons"),
    [
        (turn("r", ended("good", fate="long category")), {"dead_lettered"}),
        (turn("r", Post(NOW - 2 * HOUR, None), started=NOW - 2 * HOUR), {"not_ended"}),
        (turn("r", Post(NOW - 60_000, None)), set()),
        (turn("r", ended("good", 4 * HOUR)), set()),
        (turn("r", ended("good"), version="v2"), set()),
        (turn("r"), set()),
    ],
    ids=["dead letter", "runs for two hours", "runs for a minute", "too old", "another's", "unknown to all"],
)
def test_a_turn_without_an_accepted_end_is_left_out_for_its_reason_or_not_eligible(
    made: Turn, reasons: set[str]
) -> None:
    must = of(Traffic([made]))
    assert must.left_out.get("r", frozenset()) == reasons
    assert "r" not in must.pooled


def test_a_turn_that_is_known_from_opik_alone_is_left_out_as_not_come() -> None:
    made = turn("r", thumbs=[Thumb(NOW - 50_000, -1)])
    made.traces[0].copies = [Copy(NOW - 119_000, None), Copy(NOW - 59_000, NOW - 60_000, "bad")]
    must = of(Traffic([made]))
    assert must.left_out == {"r": frozenset(["record_not_come"])}
    assert must.bad_share == 1.0


def test_records_that_no_one_can_read_make_a_sample_incomplete_from_one_in_a_hundred_on() -> None:
    made = traffic(left_out=0)
    assert of(made).complete
    made.garbage = [Garbage(NOW - 1_000, b"{")]
    assert of(made).incomplete
