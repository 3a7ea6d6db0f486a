"""Whatever a judge's model sends back is a score on its scale, or none and why (PC5 §9.5)."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.judges.evaluator import Task
from evalcore.registry.judge import Judge
from evalcore.scoring.answers import Judgement, NotApplicable, Scored, Unscored
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import PASSING, Failure
from evalcore.scoring.chat_model import ChatModel
from evalcore.scoring.model_caller import CallLimits
from evalcore.scoring.runner import Scorer
from tests.unit.evalcore.registry.registry_disk import built

REGISTRY = built()
KINDS = {"INTEGER": "brevity", "FLOAT": "refusal", "BOOLEAN": "honesty"}
JUDGES = {kind: REGISTRY.judge(name) for kind, name in KINDS.items()}
GOOD = {"INTEGER": 4, "FLOAT": 0.5, "BOOLEAN": True}
ALL = tuple(JUDGES)
PATIENT = CallLimits(patience=4.0, first_pause=0.0, longest_pause=0.0, jitter=0.0)


async def judged(judge: Judge, *bodies: Any) -> tuple[Judgement, int]:
    """What comes of the model's server answering 200 with these bodies in turn, the last one again and again; and how
    often it was asked."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        body = bodies[min(len(asked), len(bodies)) - 1]
        return httpx.Response(200, content=body if isinstance(body, bytes) else json.dumps(body).encode())

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        model = ChatModel(client, "http://model.test/v1")
        # By its clock each call takes a second.
        scorer = Scorer(model, MemoryScoreCache(), PATIENT, now=lambda: float(len(asked)))
        (found,) = await scorer.score("g", [Task(judge, "i", "offline", {"input": "how?", "output": "so!"})])
    return found, len(asked)


def completion(content: Any, finish: Any = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}]}


def scored(score: Any) -> str:
    """As it stands, JSON or not."""
    return f'{{"score": {score}, "reason": "why"}}'


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("finish", ["stop", None, "length"])
async def test_a_whole_answer_counts_also_where_the_model_was_cut_off_after_it(kind: str, finish: Any) -> None:
    found, asked = await judged(JUDGES[kind], completion(scored(json.dumps(GOOD[kind])) + " \n" * 50, finish))
    assert (found.answer, asked) == (Scored(float(GOOD[kind])), 1)


@pytest.mark.parametrize("kind", ALL)
async def test_not_applicable_is_one_in_these_letters_only(kind: str) -> None:
    found, _ = await judged(JUDGES[kind], completion(scored('"N/A"')))
    assert isinstance(found.answer, NotApplicable if JUDGES[kind].rule.takes_na else Unscored)
    for other in ('"n/a"', '"NA"', '"N/A "', '"not applicable"', "null", '""', "N/A"):
        found, _ = await judged(JUDGES[kind], completion(scored(other)))
        assert isinstance(found.answer, Unscored), other


SCORES: list[tuple[str, str, str]] = [
    *(("INTEGER", score, said) for score, said in (
        ("6", "not from 1 to 5"), ("0", "not from 1 to 5"), ("-4", "not from 1 to 5"),
        ("5e0", "no whole number"), ("4.0", "no whole number"), ("4.5", "no whole number"), ('"4"', "no whole number"),
        ('" 4 "', "no whole number"),
        ('"4/5"', "no whole number"), ('"4.0"', "no whole number"), ('"four"', "no whole number"),
        ("4/5", "no JSON object"), ("true", "no whole number"), ("NaN", "no whole number"),
        ("Infinity", "no whole number"), ("1e400", "no whole number"), ("9" * 4_000, "not from 1 to 5"),
        ("[4]", "no whole number"), ('{"value": 4}', "no whole number"), ("04", "no JSON object"),
    )),
    *(("FLOAT", score, said) for score, said in (
        ("1.01", "not from 0 to 1"), ("-0.01", "not from 0 to 1"), ("80", "not from 0 to 1"),
        ("NaN", "not from 0 to 1"),
        ("Infinity", "not from 0 to 1"), ("-Infinity", "not from 0 to 1"), ("1e400", "not from 0 to 1"),
        ('"0.8"', "no number"), ('"80%"', "no number"), ("80%", "no JSON object"), ("0,8", "no JSON object"),
        ("true", "no number"), (".8", "no JSON object"),
    )),
    *(("BOOLEAN", score, said) for score, said in (
        ('"yes"', "neither true nor false"), ('"true"', "neither true nor false"), ("1", "neither true nor false"),
        ("0", "neither true nor false"), ("1.0", "neither true nor false"), ("True", "no JSON object"),
        ("yes", "no JSON object"), ("NaN", "neither true nor false"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "score", "said"), SCORES)
async def test_what_is_no_score_on_the_scale_is_asked_for_once_more_and_then_unscored(
    kind: str, score: str, said: str
) -> None:
    found, asked = await judged(JUDGES[kind], completion(scored(score)))
    assert isinstance(found.answer, Unscored)
    assert said in found.answer.reason
    assert (found.failure, asked) == (Failure.SLIP, 2)
    found, asked = await judged(JUDGES[kind], completion(scored(score)), completion(scored(json.dumps(GOOD[kind]))))
    assert (found.answer, asked) == (Scored(float(GOOD[kind])), 2)


WHOLE = scored(4)
TEXTS: list[tuple[str, Any, str]] = [
    ("prose", "I would give this a 4.", "no JSON object"),
    ("nonsense", "}{ qux ☃ \x00", "no JSON object"),
    ("the bare score", "4", "not one object"),
    ("prose before it", f"Sure! {WHOLE}", "no JSON object"),
    ("prose after it", f"{WHOLE} Hope that helps.", "no JSON object"),
    ("two objects", WHOLE + WHOLE, "no JSON object"),
    ("two objects on two lines", f"{WHOLE}\n{scored(1)}", "no JSON object"),
    ("a list of objects", f"[{WHOLE}]", "not one object"),
    ("an object in an object", f'{{"answer": {WHOLE}}}', "not one object"),
    ("its own schema", '{"type": "object", "properties": {"score": {"type": "integer"}}}', "not one object"),
    ("a score twice", '{"score": 1, "score": 5, "reason": "why"}', "twice"),
    ("no reason", '{"score": 4}', "not one object"),
    ("thoughts before it", f"<think>Is it a 5? No.</think>\n{WHOLE}", "no JSON object"),
    ("thoughts and nothing", "<think>Is it a 5?", "no JSON object"),
    ("a fence in prose", f"Here:\n```json\n{WHOLE}\n```", "no JSON object"),
    ("two fences", f"```json\n{WHOLE}\n```\n```json\n{WHOLE}\n```", "no JSON object"),
    ("a text that is JSON", json.dumps(WHOLE), "not one object"),
    ("cut off", '{"score": 4, "reason": "it answ', "no JSON object"),
    ("a mark of byte order", f"\ufeff{WHOLE}", "no JSON object"),
    ("single quotes", "{'score': 4, 'reason': 'why'}", "no JSON object"),
    ("a comment", f"{WHOLE} // fine", "no JSON object"),
    ("white space", " \n\t ", "without a text"),
    ("a list of parts", [{"type": "text", "text": WHOLE}], "without a text"),
    ("a number", 4, "without a text"),
]


@pytest.mark.parametrize(("text", "said"), [case[1:] for case in TEXTS], ids=[case[0] for case in TEXTS])
async def test_no_text_but_the_one_object_is_an_answer(text: Any, said: str) -> None:
    found, _ = await judged(JUDGES["INTEGER"], completion(text))
    assert isinstance(found.answer, Unscored)
    assert said in found.answer.reason
    assert (found.failure is Failure.SLIP) is (said != "without a text")


NO_ANSWERS: list[tuple[str, Any, str]] = [
    ("null, cut off", completion(None, "length"), "ended without a text (length)"),
    ("a refusal", completion(None, refusal="I can't help with that"), "refused to answer"),
    ("a refusal beside a score", completion(WHOLE, refusal="I can't help with that"), "refused to answer"),
    ("filtered", completion(None, "content_filter"), "content filter"),
    ("filtered, and a score left", completion(WHOLE, "content_filter"), "content filter"),
    ("nothing but a filter's word", completion("", "content_filter"), "content filter"),
]  # fmt: skip
NO_COMPLETIONS: list[tuple[str, Any, str]] = [
    ("null", completion(None), "ended without a text (stop)"),
    ("an empty text", completion(""), "ended without a text (stop)"),
    ("tool calls", completion(None, "tool_calls", tool_calls=[{"function": {"name": "score", "arguments": WHOLE}}]),
     "ended without a text (tool_calls)"),
    ("no choices", {"choices": []}, "without a chat completion"),
    ("choices are null", {"choices": None}, "without a chat completion"),
    ("no message", {"choices": [{"finish_reason": "stop"}]}, "without a chat completion"),
    ("the message is a text", {"choices": [{"message": WHOLE}]}, "without a chat completion"),
    ("an error in a 200", {"error": {"message": "overloaded"}}, "without a chat completion"),
    ("no JSON", b"<html>Bad gateway</html>", "without a chat completion"),
    ("nothing", b"", "without a chat completion"),
    ("half of a completion", json.dumps(completion(WHOLE)).encode()[:-3], "without a chat completion"),
    ("another encoding", "é".encode("latin-1"), "without a chat completion"),
    ("deep", b"[" * 100_000, "without a chat completion"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "said"), [case[1:] for case in NO_ANSWERS], ids=[case[0] for case in NO_ANSWERS])
async def test_a_model_that_will_not_answer_is_asked_once_more_and_says_why(body: Any, said: str) -> None:
    found, asked = await judged(JUDGES["INTEGER"], body)
    assert isinstance(found.answer, Unscored)
    assert said in found.answer.reason
    assert (found.failure, asked) == (Failure.SLIP, 2)


@pytest.mark.parametrize(
    ("body", "said"), [case[1:] for case in NO_COMPLETIONS], ids=[case[0] for case in NO_COMPLETIONS]
)
async def test_a_200_without_a_completion_is_asked_for_again_as_a_503_is(body: Any, said: str) -> None:
    """A gateway's page is no answer of the model: what it left unscored can be mended (PC5 §9.5)."""
    found, asked = await judged(JUDGES["INTEGER"], body, body, body, completion(WHOLE))
    assert (found.answer, asked) == (Scored(4.0), 4)
    found, _ = await judged(JUDGES["INTEGER"], body)
    assert isinstance(found.answer, Unscored)
    assert said in found.answer.reason
    assert found.failure in PASSING | {Failure.DOWN}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([WHOLE, scored("true")]),
    lambda of: (
        st.lists(of, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "message", "content", "refusal", "usage", "score"]) | st.text(), of
        )
    ),
    max_leaves=8,
)


@given(st.sampled_from(ALL), JSON | JSON.map(completion) | st.binary(max_size=40))
async def test_whatever_the_server_sends_is_a_score_in_range_or_a_failure_with_its_reason(kind: str, body: Any) -> None:
    judge = JUDGES[kind]
    found, _ = await judged(judge, body)
    if isinstance(found.answer, Scored):
        low, high = judge.score_range
        assert low <= found.answer.value <= high
    elif isinstance(found.answer, Unscored):
        assert found.answer.reason
        assert found.failure in PASSING | {Failure.SLIP, Failure.DOWN}, "nothing here is a defect of ours"
