"""A trace made of spans has each call once and adds inference alone, however many instrumentations recorded it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pydantic import TypeAdapter

from evalcore.trajectory.spans import Span, trace_of
from schemas.wire_forms import TraceDetails

OURS, THEIRS = "opentelemetry.instrumentation.openai", "openinference.instrumentation.openai"
USED = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}
THEIR_USED = {"llm.token_count.prompt": 100, "llm.token_count.completion": 10}


def span(
    number: int, parent: int, at: tuple[int, int], scope: str = OURS, error: str | None = None, **more: Any
) -> Span:
    """`at`: start and end in milliseconds."""
    start, end = (one * 1_000_000 for one in at)
    return Span("t", f"{number}", f"{parent}", "step", start, end, more, error, scope=scope)


def chat(number: int, parent: int, at: tuple[int, int], **more: Any) -> Span:
    return span(number, parent, at, **{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"} | USED | more)


def their_chat(number: int, parent: int, at: tuple[int, int], **more: Any) -> Span:
    said = {"openinference.span.kind": "LLM", "llm.model_name": "m-2026"} | THEIR_USED | more
    return span(number, parent, at, THEIRS, **said)


def tool(number: int, parent: int, at: tuple[int, int], name: str = "look", scope: str = OURS, **more: Any) -> Span:
    return span(number, parent, at, scope, **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name} | more)


def used(*spans: Span) -> tuple[int, int | None]:
    """How many calls of models, and their tokens."""
    found = trace_of(spans)
    TypeAdapter(TraceDetails).validate_python(found)
    return len(found.get("llm_calls", ())), found.get("usage", {}).get("total_tokens")


def named(*spans: Span) -> list[str]:
    found = trace_of(spans)
    TypeAdapter(TraceDetails).validate_python(found)
    return [one["name"] for one in found.get("tool_calls", ())]


AGENT = span(1, 0, (0, 100), **{"gen_ai.operation.name": "invoke_agent"} | USED)
THREE = (AGENT, chat(2, 1, (1, 10)), chat(3, 1, (11, 20)), chat(4, 1, (21, 30)))


def test_a_call_beside_its_double_counts_once() -> None:
    """Three calls of 110 tokens, of which another instrumentation saw one too: 330 tokens, not 440."""
    assert used(*THREE, their_chat(5, 1, (2, 9))) == (3, 330)
    assert used(*THREE, their_chat(5, 1, (0, 11))) == (3, 330)


def test_a_call_below_its_double_counts_once_also_where_one_says_no_tokens() -> None:
    assert used(*THREE, their_chat(5, 2, (2, 9))) == (3, 330)
    assert used(*THREE, span(5, 2, (2, 9), THEIRS, **{"llm.model_name": "m"})) == (3, 330)


def test_equal_calls_at_one_time_are_as_many_as_one_instrumentation_saw() -> None:
    both = chat(2, 1, (1, 10)), chat(3, 1, (1, 11))
    assert used(AGENT, *both) == (2, 220)
    assert used(AGENT, *both, their_chat(4, 1, (2, 9)), their_chat(5, 1, (2, 10))) == (2, 220)


@pytest.mark.parametrize(
    "other",
    [
        {"llm.model_name": "another"},
        {"llm.token_count.prompt": 90},
    ],
)
def test_calls_that_differ_are_two(other: dict[str, Any]) -> None:
    assert used(chat(2, 1, (1, 10)), their_chat(3, 1, (2, 9), **other))[0] == 2


def test_one_response_is_one_call_and_two_are_two() -> None:
    first, same, second = ({"gen_ai.response.id": name} for name in ("r1", "r1", "r2"))
    assert used(chat(2, 1, (1, 10), **first), their_chat(3, 1, (12, 13), **same)) == (1, 110)
    assert used(chat(2, 1, (1, 10), **first), their_chat(3, 1, (2, 9), **second)) == (2, 220)


@pytest.mark.parametrize("operation", ["invoke_agent", "task", "CHAIN", "embeddings", "invoke_workflow"])
def test_tokens_of_what_is_no_inference_are_not_added(operation: str) -> None:
    summed = span(9, 0, (0, 99), **{"gen_ai.operation.name": operation, "gen_ai.request.model": "m"} | USED)
    assert used(summed, chat(2, 0, (1, 10))) == (1, 110)
    assert used(summed) == (0, None)


def test_a_span_of_inference_above_several_is_their_sum_and_not_above_a_tools_own() -> None:
    summed = span(9, 0, (0, 99), **{"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 220})
    assert used(summed, chat(2, 9, (1, 10)), chat(3, 9, (11, 20))) == (2, 220)
    assert used(chat(2, 1, (1, 50)), tool(3, 2, (2, 40)), chat(4, 3, (3, 30))) == (2, 220)


def test_where_one_call_says_no_tokens_the_sum_is_unknown_unless_it_failed() -> None:
    silent = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    assert used(*THREE, span(5, 1, (31, 40), **silent)) == (4, None)
    assert used(*THREE, span(5, 1, (31, 40), error="429", **silent)) == (4, 330)


def test_a_thousand_parallel_calls_below_one_another_take_no_second() -> None:
    deep = [tool(number, number - 1, (1, 2_000 - number), f"look{number % 2}") for number in range(1, 1_001)]
    began = time.process_time()
    assert len(named(*deep, *(tool(2_000, 1_000, (5, 6), scope=THEIRS) for _ in range(1)))) > 1
    assert time.process_time() - began < 5


def test_costs_are_added_where_all_say_theirs() -> None:
    priced = [chat(number, 1, (number, number), **{"gen_ai.usage.cost": 0.25}) for number in (2, 3)]
    assert trace_of(priced)["usage"]["cost_usd"] == 0.5
    assert "cost_usd" not in trace_of([*priced, chat(4, 1, (4, 4))])["usage"]


def test_a_tools_call_that_two_saw_counts_once() -> None:
    given = {"gen_ai.tool.call.arguments": '{"a": 1}'}
    theirs = {"openinference.span.kind": "TOOL", "tool.name": "look", "output.value": '["x"]'}
    inner = span(3, 2, (2, 9), THEIRS, error="refused", **theirs)
    assert trace_of([tool(2, 1, (1, 10), **given), inner])["tool_calls"] == [
        {"name": "look", "arguments": {"a": 1}, "result": ["x"], "error": "refused"}
    ]
    assert named(tool(2, 1, (1, 10)), span(3, 1, (2, 9), THEIRS, **theirs)) == ["look"]
    assert named(tool(2, 1, (1, 10)), tool(3, 2, (2, 9))) == ["look"], "one instrumentation has two layers"


def test_what_is_called_twice_is_two_calls() -> None:
    again = {"gen_ai.tool.call.id": "c1"}
    assert named(tool(2, 1, (1, 10), **again, error="x"), tool(3, 1, (11, 20), **again)) == ["look"] * 2, "a retry"
    assert named(tool(2, 1, (1, 10)), tool(3, 1, (1, 10))) == ["look"] * 2, "parallel calls"
    ids = ({"gen_ai.tool.call.id": name} for name in ("c1", "c2"))
    assert named(tool(2, 1, (1, 10), **next(ids)), tool(3, 1, (2, 9), scope=THEIRS, **next(ids))) == ["look"] * 2
    assert named(tool(2, 1, (1, 10)), tool(3, 2, (2, 9), "search")) == ["look", "search"], "a tool's own tool"
    args = ({"gen_ai.tool.call.arguments": text} for text in ("[1]", "[2]"))
    assert named(tool(2, 1, (1, 10), **next(args)), tool(3, 2, (2, 9), **next(args))) == ["look"] * 2, "recursion"


@pytest.mark.parametrize("name", ["transfer_to_billing_desk", "handoff to Billing Desk"])
def test_a_transfer_is_a_handoff_and_no_tools_call(name: str) -> None:
    found = trace_of([tool(2, 1, (1, 10), name), tool(3, 1, (2, 9), "transfer_to_billing_desk", scope=THEIRS)])
    assert "tool_calls" not in found
    assert [one.lower().replace(" ", "_") for one in found["handoffs"]] == ["billing_desk"]
    assert named(tool(2, 1, (1, 10), "transfer_money")) == ["transfer_money"]
