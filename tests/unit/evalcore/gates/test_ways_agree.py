"""One item, one verdict, whichever way it goes (contracts §3, "One way"): items, verticals, duplicates, what is not
applicable or not scored, dimensions, slips, milestones, limits, skips, late seeds, suspended judges, baselines,
coverage and what people said of items are drawn at random, and the stream, `gate run`, `evaluate_gate` and the judges'
metrics agree on every one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore.scoring.items import items_of, served
from schemas.judges import Milestone
from tests.unit.evalcore.gates.ways_rig import (
    CATEGORIES,
    FULL,
    JUDGES,
    MERGE,
    RAMP,
    START,
    VERTICALS,
    Beside,
    Drawn,
    by_evaluate_gate,
    by_gate_run,
    by_metrics,
    by_stream,
    evaluated,
)
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY


def marked(*digits: str) -> st.SearchStrategy[str | None]:
    return st.tuples(*map(st.sampled_from, digits)).map(lambda mark: f"so mk{''.join(mark)}")


good, near = marked("0", "0", "0", "0"), marked("01", "0123", "0", "0")
SAMPLES = (
    good,
    near,
    near,
    near | marked("0", "0", "25", "0"),
    near | marked("0014", "0", "0", "0"),
    st.none() | marked(*["0001234"] * 4),
)
"""Strategies for what an agent answers: of a sample that is good, of one that is nearly so, of one that a judge of true
and false finds something in, of any."""
ids = st.integers(0, 11)


@st.composite
def traces(
    draw: st.DrawFn, verticals: st.SearchStrategy[str | None], outputs: st.SearchStrategy[str | None]
) -> dict[str, Any]:
    number, said = draw(ids), draw(outputs)
    turn = draw(st.none() | st.sampled_from(["t1", "t2"]))
    ended = datetime.fromtimestamp(START + draw(st.integers(0, 3)), UTC)
    return {
        "trace_id": f"0192a5f0-0000-7000-8000-{number:012d}",
        "input": {"messages": [{"content": f"how? {number}"}]},
        "output": None if said is None else {"messages": [{"content": said}]},
        "ended_at": ended.isoformat(),
        "metadata": {
            "agent_id": "a", "agent_version": "v", "vertical": draw(verticals),
            "sub_agent": draw(st.sampled_from(["chat", "finder"])),
        },
        **({"response_id": turn} if turn else {}),
    }  # fmt: skip


@st.composite
def golden(
    draw: st.DrawFn, category: str, number: int, vertical: str | None, outputs: st.SearchStrategy[str | None]
) -> dict[str, Any]:
    metadata = {"id": f"g{number}", "category": category}
    return {
        "input": f"what? {number}",
        "output": draw(outputs),
        "expected_output": "WRITTEN BY HAND mk2222",
        "metadata": {**metadata, **({"vertical": vertical} if vertical else {})},
    }


def owner(vertical: str | None) -> str | None:
    return "shop" if vertical == "shop" else None


LIMITS = st.sampled_from((0.9, 0.92, 0.95, 1.0))
MEANS = {"helpfulness": (0.9, 1.0, 1.0), "brevity": (3.0, 5.0), "refusal": (0.9, 1.0), "honesty": (1.0,)}
"""Means of earlier gates: lower and higher ones than today's."""


@st.composite
def besides(draw: st.DrawFn) -> Beside:
    """Most verdicts have little beside their scores; else nearly all would fail by what stands there."""
    past = {
        judge: draw(st.lists(st.sampled_from(means), min_size=1, max_size=4))
        for judge, means in MEANS.items()
        if draw(st.booleans())
    }
    return Beside(
        suspended=tuple(judge for judge in JUDGES if draw(st.integers(0, 14)) == 7),
        past=past,
        coverage=draw(st.sampled_from((1.0, 1.0, 1.0, 0.3, 0.29))),
        shop={milestone: draw(LIMITS) for milestone in Milestone},
        passed=draw(st.booleans()),
        skipped=draw(st.integers(0, 4)) == 2,
        looser=draw(st.sampled_from((None, True, False))),
        due=draw(st.sampled_from((date(2027, 2, 18), TODAY, TODAY - timedelta(days=1)))),
    )


@st.composite
def rollouts(draw: st.DrawFn) -> Drawn:
    """A request that names a vertical is about that vertical's traces: the stream has none of others for it."""
    outputs = draw(st.sampled_from(SAMPLES))
    vertical = draw(st.sampled_from((None, None, "shop", "travel")))
    one = draw(st.sampled_from(VERTICALS))
    mixed = st.sampled_from(VERTICALS) if draw(st.booleans()) else st.just(one)
    least = draw(st.sampled_from((0, 7, 7)))
    traced = draw(st.lists(traces(st.just(vertical) if vertical else mixed, outputs), min_size=least, max_size=14))
    limits_of = vertical or served(items_of(traced, RAMP, {}), ("shop", "travel"))
    numbers = draw(st.lists(st.integers(0, 5), max_size=5))
    must = CATEGORIES[owner(limits_of)]
    asked_of = [
        draw(
            golden(must if place == 0 else draw(st.sampled_from(("general_qa", "shop_returns"))), number, None, outputs)
        )
        for place, number in enumerate(numbers)
    ]
    # A dataset's item that is there twice is one item; where the two differ in category, the last one holds.
    kept = {row["metadata"]["id"]: row for row in asked_of}
    if asked_of and must not in {row["metadata"]["category"] for row in kept.values()}:
        asked_of.append(draw(golden(must, 6, None, outputs)))
    milestone = draw(st.sampled_from((RAMP, FULL)))
    judges = draw(st.lists(st.sampled_from((*JUDGES, "brevity.tone")), min_size=1, max_size=3, unique=True))
    return Drawn(milestone, vertical, tuple(judges), tuple(traced), tuple(asked_of), draw(besides()))


@st.composite
def merges(draw: st.DrawFn) -> Drawn:
    """Items of one category, whose judges are those that `gate run` takes by itself."""
    vertical, said = draw(st.sampled_from((None, "shop", "travel"))), draw(st.sampled_from((None, "shop", "travel")))
    outputs = draw(st.sampled_from(SAMPLES))
    category = CATEGORIES[owner(vertical or said)]
    numbers = draw(st.lists(st.integers(0, 11), min_size=draw(st.sampled_from((1, 5))), max_size=10, unique=True))
    asked_of = tuple(draw(golden(category, number, said, outputs)) for number in numbers)
    judges = ("helpfulness", "brevity", "brevity.tone") if category == "shop_returns" else ("helpfulness",)
    return Drawn(MERGE, vertical, judges, (), asked_of, draw(besides()))


def adjudicated(drawn: Drawn, words: list[bool | None]) -> Drawn:
    """The same after people looked at what honesty found wrong: a word about each item, None where no one gave one."""
    found = evaluated(drawn, built(drawn.changes)).per_judge_scores["honesty"].questioned
    said = {one.item_hash: word for one, word in zip(found, words, strict=False) if word is not None}
    return replace(drawn, beside=replace(drawn.beside, adjudicated=said))


words = st.lists(st.sampled_from((True, True, False, None)), max_size=10)


@settings(max_examples=40)
@given(rollouts(), words)
def test_a_rollouts_verdict_is_the_same_on_the_stream_in_gate_run_in_evaluate_gate_and_by_metrics(
    drawn: Drawn, said: list[bool | None]
) -> None:
    drawn = adjudicated(drawn, said)
    registry = built(drawn.changes)
    found = by_evaluate_gate(drawn, registry)
    assert by_metrics(drawn, registry) == found
    assert by_stream(drawn, registry) == found
    assert by_gate_run(drawn, registry) == found


@settings(max_examples=25)
@given(merges(), st.integers(1, 3), words)
def test_a_verdict_before_a_merge_is_the_same_in_gate_run_in_evaluate_gate_and_by_metrics(
    drawn: Drawn, times: int, said: list[bool | None]
) -> None:
    """Given several times to those who take lists; a dataset's file with an item twice is refused."""
    drawn = adjudicated(drawn, said)
    registry = built(drawn.changes)
    repeated = replace(drawn, golden=drawn.golden * times)
    found = by_evaluate_gate(repeated, registry)
    assert by_metrics(repeated, registry) == found
    assert by_gate_run(drawn, registry) == found


def test_what_is_drawn_has_verdicts_of_every_kind() -> None:
    """Else the ways might agree for want of anything to differ on."""
    seen: Counter[str] = Counter()

    @settings(max_examples=150, derandomize=True, database=None)
    @given(rollouts() | merges(), words)
    def look(drawn: Drawn, said: list[bool | None]) -> None:
        drawn = adjudicated(drawn, said)
        level, scores, why = by_evaluate_gate(drawn, built(drawn.changes))
        seen.update({level, *why})
        seen["adjudicated"] += any(one[-1] for one in scores.values())

    look()
    assert min(seen[level] for level in ("pass", "warn", "fail")) >= 3, seen
    codes = {
        "below_threshold", "floor_breach", "regressed", "insufficient_sample", "judge_unavailable", "coverage_too_low",
        "judge_suspended", "gate_skipped", "provisional_overdue", "adjudicated",
    }  # fmt: skip
    assert codes <= set(+seen), seen
