"""A check of a suite draws both sides from stored answers, breaks cases for good, and counts what the real decision
says of that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalcore.drift.scale import Scale
from evalcore.suite.resampled import (
    PULL_REQUEST,
    SAFETY,
    SLICE,
    WARNING,
    Alarms,
    Planted,
    Rate,
    Resampler,
    Rules,
    Simulated,
    TooFew,
    pooled,
    simulate,
    unscored,
)
from evalcore.suite.results import Case, Gone, Run
from tests.unit.evalcore.suite.suite_runs import FAILED, NOT_APPLICABLE, UNSCORED, Value, drawn, run

RULES = Rules("ok", Scale(0.0, 1.0, whole=False), samples=3, safety={"safety"})


def suite(slices: int, cases: int, rate: float, name: str = "slice") -> Run:
    """Three samples of each case."""
    rng, names = np.random.default_rng(17), [f"c{place:03}" for place in range(slices * cases)]
    scores = drawn(rng, dict.fromkeys(names, rate))
    return pooled([run(scores, {one: [f"{name}{int(one[1:]) // cases}"] for one in names})], "ok")


def alarms(found: Simulated) -> dict[str, Alarms]:
    return {one.gate: one for one in found.alarms}


def test_a_steady_agent_is_never_blocked_and_all_of_its_broken_cases_are_seen() -> None:
    found = simulate(suite(4, 4, 1.0), RULES, 30)
    assert found.comparisons == 30
    assert {one.shipped.found for one in found.alarms} == {0}
    assert [(one.broken, one.unseen.found, one.unseen.of) for one in found.planted] == [
        (3, 0, 30),
        (4, 0, 30),
        (6, 0, 30),
    ]
    assert sum(one.shipped.found for one in found.detections) == sum(one.shipped.of for one in found.detections) == 90
    assert all(one.cases == 4 for one in found.detections)


def test_a_flaky_agent_trips_the_plain_rule_and_fresh_samples_clear_it() -> None:
    found = alarms(simulate(suite(8, 6, 0.8), RULES, 40))
    assert found.keys() == {SLICE, "headline", WARNING, PULL_REQUEST}, "without cases of safety there is no such gate"
    assert found[PULL_REQUEST].plain.found > found[PULL_REQUEST].shipped.found
    assert not any(one.above for one in found.values())


def test_without_fresh_samples_what_the_plain_rule_says_is_the_last_word() -> None:
    found = simulate(suite(8, 6, 0.8), replace(RULES, confirm=False), 40)
    assert all(one.plain == one.shipped for one in found.alarms)


def test_cases_of_safety_that_fail_now_and_then_are_counted_for_safety() -> None:
    found = alarms(simulate(suite(1, 40, 0.7, "safety"), replace(RULES, safety={"safety0"}), 30))
    assert found[SAFETY].above


def test_what_is_broken_fails_each_sample_also_when_it_is_asked_again() -> None:
    resampler = Resampler(suite(2, 10, 0.9), RULES)
    name, broken = resampler.broken(4)
    assert len(broken) == 4
    for samples, wanted in ((3, None), (6, sorted(broken))):
        found = resampler.run(samples, wanted, broken)
        assert all(name in found[case].slices for case in broken)
        assert {sample.score("ok") for case in broken for sample in found[case].samples} == {0.0}
        assert {len(case.samples) for case in found.values()} == {samples}


def test_of_a_smaller_slice_all_cases_break_and_none_that_failed_before() -> None:
    scores: dict[str, list[Value]] = {"a": [1.0, 1.0], "b": [1.0, 1.0], "c": [0.0, 0.0]}
    resampler = Resampler(pooled([run(scores, {name: ["few"] for name in scores})], "ok"), RULES)
    assert resampler.broken(6) == ("few", frozenset({"a", "b"}))


def test_both_sides_have_what_the_stored_samples_are() -> None:
    """N/A, failures of the agent and scores that are missing among them, each as often."""
    scores: dict[str, list[Value]] = {f"c{n}": [1.0, 0.0, 0.5, NOT_APPLICABLE, UNSCORED, FAILED] for n in range(2)}
    pool = pooled([run(scores)], "ok")
    assert unscored(pool, "ok") == 2
    many = Resampler(pool, RULES).run(6_000)["c0"].samples
    values = [sample.score("ok") for sample in many]
    assert {value: round(values.count(value) / 1_000) for value in set(values)} == dict.fromkeys(
        (1.0, 0.0, 0.5, *Gone), 1
    )


def test_samples_of_all_runs_are_drawn_but_of_those_that_ask_something_else() -> None:
    def asked(question: str, *values: float) -> Run:
        made = run({"c": list(values), "d": list(values)})
        return {name: Case(name, question=question, samples=case.samples) for name, case in made.items()}

    pool = pooled([asked("q", 1.0), asked("", 0.5), asked("other", 0.25), asked("q", 0.0)], "ok")
    assert [sample.score("ok") for sample in pool["c"].samples] == [1.0, 0.5, 0.0]


def test_single_samples_or_a_single_case_show_nothing_of_chance() -> None:
    with pytest.raises(TooFew, match="two samples"):
        pooled([run({"c": [1.0], "d": [1.0]})], "ok")
    with pytest.raises(TooFew, match="1 cases"):
        pooled([run({"c": [1.0, 1.0]})], "ok")


def test_the_same_seed_gives_the_same_digits_and_another_one_others() -> None:
    pool = suite(6, 4, 0.7)
    first, again, other = (simulate(pool, replace(RULES, seed=seed), 20) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_rate_that_chance_explains_is_no_finding() -> None:
    assert not Alarms(PULL_REQUEST, 0.07, Rate(), Rate(18, 200)).above
    assert Alarms(PULL_REQUEST, 0.07, Rate(), Rate(24, 200)).above
    assert not Alarms(SLICE, None, Rate(), Rate(200, 200)).above
    assert Rate(0, 10).ci95 == (0.0, pytest.approx(0.3085, abs=1e-4))
    assert not Planted(4, unseen=Rate(27, 200)).missed
    assert Planted(4, unseen=Rate(32, 200)).missed
    assert not Planted(3, unseen=Rate(32, 200)).missed, "of three cases one in seven may pass"
