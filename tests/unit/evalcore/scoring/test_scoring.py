"""Judges that run: every item comes to an answer, whatever the model says or does (PC5 §9.5)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from evalcore.judges.evaluator import Task
from evalcore.scoring.answers import NotApplicable, Scored, Unscored, by_name
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import PASSING, Failure
from evalcore.scoring.model_caller import CallLimits
from streams.metric_set import JUDGE_ANSWERS
from streams.metrics import JudgeAnswers, Metrics
from tests.unit.evalcore.scoring.scoring_rig import CALL, GOOD, JUDGE, REGISTRY, Model, down, many, scorer, tasks


async def test_answers_come_in_the_order_of_the_tasks_with_their_weights() -> None:
    def judged(output: str, _: int) -> str:
        return json.dumps({"score": int(output[-1]), "reason": f"because {output}"})

    model = Model(judged)
    found = await scorer(model).score("g", tasks("o5", "o1", "o3", weight=2.5))
    assert [one.answer for one in found] == [Scored(5.0, 2.5), Scored(1.0, 2.5), Scored(3.0, 2.5)]
    assert [one.reason for one in found] == ["because o5", "because o1", "because o3"]
    assert not any(one.cached or one.failure for one in found)
    assert await scorer(model).score("g", []) == []


async def test_not_applicable_is_an_answer_and_is_kept_like_one() -> None:
    model, cache = Model('{"score": "N/A", "reason": "a greeting"}'), MemoryScoreCache()
    for cached in (False, True):
        (found,) = await scorer(model, cache).score("g", tasks("hi"))
        assert (found.answer, found.cached) == (NotApplicable(), cached)
    assert len(model.calls) == 1


async def test_an_answer_of_na_that_was_kept_is_none_once_the_rule_does_not_allow_it() -> None:
    strict = replace(JUDGE, rule=JUDGE.rule.model_copy(update={"allow_na": False}))
    model = Model('{"score": "N/A", "reason": "a greeting"}')
    one = scorer(model)
    await one.score("g", tasks("hi"))
    (kept,) = await one.score("g", tasks("hi", judge=strict, weight=2.0))
    assert isinstance(kept.answer, Unscored)
    assert (kept.answer.weight, kept.cached, len(model.calls)) == (2.0, True, 1)


async def test_dimensions_have_scores_of_their_own_also_out_of_the_cache_and_when_unscored() -> None:
    judge, cache = REGISTRY.judge("brevity"), MemoryScoreCache()
    scale = judge.score_range[1]
    text = json.dumps({"score": scale, "reason": "r", "dimensions": {"tone-of-voice": "N/A", "facts": scale}})
    text = text if judge.score_type == "FLOAT" else text.replace(str(scale), str(int(scale)))
    for _ in range(2):
        found = await scorer(Model(text), cache).score("g", tasks("a", judge=judge))
        assert by_name([judge], found) == {
            "brevity": [Scored(scale)], "brevity.tone_of_voice": [NotApplicable()], "brevity.facts": [Scored(scale)]
        }  # fmt: skip
    (lost,) = await scorer(Model(down(Failure.REFUSED))).score("g", tasks("b", judge=judge))
    assert {type(answer) for answer in lost.dimensions.values()} == {Unscored}
    assert set(lost.dimensions) == {"tone_of_voice", "facts"}


@pytest.mark.parametrize("kind", [Failure.TIMEOUT, Failure.RATE_LIMITED, Failure.UNAVAILABLE, Failure.UNREACHABLE])
async def test_what_passes_by_itself_is_tried_again(kind: Failure) -> None:
    model = Model(lambda _, attempt: down(kind) if attempt < 4 else GOOD)
    (found,) = await scorer(model).score("g", tasks("a"))
    assert (found.answer, len(model.calls)) == (Scored(4.0), 4)


@pytest.mark.parametrize("kind", [Failure.REFUSED, Failure.UNAUTHORIZED])
async def test_a_refusal_is_not_tried_again(kind: Failure) -> None:
    """400, 401, 403, 404: nothing changes by asking once more."""
    model = Model(down(kind))
    (found,) = await scorer(model).score("g", tasks("a", weight=3.0))
    assert (found.answer, found.failure, len(model.calls)) == (Unscored(f"it is {kind}", 3.0), kind, 1)


async def test_tries_end_with_the_gates_patience_and_the_last_reason_is_told() -> None:
    model = Model(down())
    (found,) = await scorer(model).score("g", tasks("a"))
    assert (found.answer, len(model.calls)) == (Unscored("it is unavailable"), 4)


@pytest.mark.parametrize(
    "text",
    [
        "I would give this a 5", '{"score": 6, "reason": "r"}', '{"score": "4", "reason": "r"}', "", "null",
        '{"score": NaN, "reason": "r"}', '{"score": 1e999, "reason": "r"}', '{"score": true, "reason": "r"}',
        '{"score": 4.5, "reason": "r"}', '{"score": 4}',
    ],
)  # fmt: skip
async def test_an_answer_that_is_no_score_is_asked_for_once_more_and_then_unscored(text: str) -> None:
    """PC5 §9.5: prose, a 6 on a 1 to 5 scale and numbers that are none fail closed."""
    model = Model(text)
    cache = MemoryScoreCache()
    (found,) = await scorer(model, cache).score("g", tasks("a"))
    assert isinstance(found.answer, Unscored)
    assert (found.failure, len(model.calls)) == (Failure.SLIP, 2)
    assert cache._held == {}, "a failure is never kept"
    mended = Model(lambda _, attempt: text if attempt == 1 else GOOD)
    assert [one.answer for one in await scorer(mended).score("g", tasks("a"))] == [Scored(4.0)]


async def test_a_call_that_takes_too_long_is_given_up() -> None:
    limits = CallLimits(at_once=2, patience=CALL, call_seconds=0.02, first_pause=0.0, jitter=0.0)
    model = Model(seconds=60)
    (found,) = await asyncio.wait_for(scorer(model, limits=limits).score("g", tasks("a")), 2)
    assert (found.failure, len(model.calls), model.now) == (Failure.TIMEOUT, 2, 0)
    assert isinstance(found.answer, Unscored)
    assert "0.02 s" in found.answer.reason


async def test_a_defect_or_a_missing_field_costs_one_answer_and_no_error_comes_out() -> None:
    model = Model(lambda output, _: RuntimeError("secret prompt text") if output == "bad" else GOOD)
    mixed = [*tasks("good", "bad"), Task(JUDGE, "no output", "offline", {"input": "x"}), *tasks("too")]
    found = await scorer(model).score("g", mixed)
    assert [one.failure for one in found] == [None, Failure.BROKEN, Failure.UNREADABLE, None]
    assert isinstance(found[1].answer, Unscored)
    assert "secret" not in found[1].answer.reason
    assert isinstance(found[2].answer, Unscored)
    assert "output" in found[2].answer.reason
    strange = [Task(JUDGE, "x", "nowhere", {"input": "x", "output": "y"})]
    assert [one.failure for one in await scorer(model).score("g", strange)] == [Failure.BROKEN]


async def test_a_judges_calls_and_its_answers_without_a_call_are_counted() -> None:
    """Contracts §6: a repeated gate costs nothing, and it shows."""
    metrics, wrong = Metrics(), {"o0": down(Failure.UNAVAILABLE), "o1": "prose"}
    model = Model(lambda output, attempt: wrong.get(output, GOOD) if attempt == 1 else GOOD)
    ours = scorer(model, observe=JudgeAnswers(metrics))
    for _ in range(4):
        await ours.score("g", many(5))

    def counted(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    found = {outcome: counted("rampgate_judge_calls_total", outcome=outcome) for outcome in JUDGE_ANSWERS}
    # A slip is an answer, too: the call ended well.
    assert {name: count for name, count in found.items() if count} == {
        "ok": 6, "unavailable": 1, "slip": 1, "cached": 15
    }  # fmt: skip
    assert counted("rampgate_judge_cache_hit_ratio") == 15 / 21
    assert {kind.value for kind in Failure} >= set(JUDGE_ANSWERS) - {"ok", "cached"} >= {kind.value for kind in PASSING}
