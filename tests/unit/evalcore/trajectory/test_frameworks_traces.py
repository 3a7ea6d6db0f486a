"""What frameworks write down is read as what was called, asked for in vain, handed over and used; never as less."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.trajectory.calls import Executed, Requested, calls_of, requests_in
from evalcore.trajectory.reading import in_one_form
from evalcore.trajectory.record import same_agent, trajectory_of
from evalcore.trajectory.spans import Span, trace_of


def asked(*names: str, turn: float = 0) -> list[Requested]:
    return [Requested(name, turn, f"{turn}-{place}", {}) for place, name in enumerate(names)]


def test_parallel_calls_stand_in_the_models_order_whichever_began_first() -> None:
    ran = [Executed("c", 1, "0-2"), Executed("a", 2, "0-0"), Executed("b", 3, "0-1")]
    found = calls_of(asked("a", "b", "c"), ran)
    assert [call["name"] for call in found["tool_calls"]] == ["a", "b", "c"]
    assert found["requested_calls"] == []


def test_what_was_asked_for_and_not_executed_stands_apart() -> None:
    found = calls_of(asked("a", "delete", "b"), [Executed("a", 1, "0-0"), Executed("b", 2, "0-2")])
    assert [call["name"] for call in found["tool_calls"]] == ["a", "b"]
    assert found["requested_calls"] == [{"name": "delete", "arguments": {}}]


def test_a_call_that_failed_and_its_retry_are_two_also_under_one_id() -> None:
    ran = [Executed("a", 1, "0-0", {"error": "timed out"}), Executed("a", 2, "0-0", {"result": 1})]
    assert [call.get("error") for call in calls_of(asked("a"), ran)["tool_calls"]] == ["timed out", None]
    again = [Requested("a", 0, "call_0", {}), Requested("a", 5, "call_0", {})]  # a model that begins to count again
    ran = [Executed("a", 1, "call_0", {"error": "x"}), Executed("a", 2, "call_0"), Executed("a", 6, "call_0")]
    assert len(calls_of(again, ran)["tool_calls"]) == 3


def test_calls_without_ids_are_found_by_name_and_arguments() -> None:
    wanted = [Requested("a", 0, arguments={"x": 1}), Requested("a", 0, arguments={"x": 2})]
    ran = [Executed("a", 1, said={"arguments": {"x": 2}}), Executed("a", 2, said={"arguments": {"x": 1}})]
    assert [call["arguments"]["x"] for call in calls_of(wanted, ran)["tool_calls"]] == [1, 2]


def test_a_transfer_that_failed_is_no_handoff_and_of_two_at_once_the_first_counts() -> None:
    failed = [Executed("transfer_to_billing", 1, "0-0", {"error": "unknown agent"})]
    found = calls_of(asked("transfer_to_billing"), failed)
    assert (found["handoffs"], found["tool_calls"]) == ([], [])
    assert found["requested_calls"][0]["error"] == "unknown agent"
    both = asked("transfer_to_billing", "transfer_to_sales")
    assert calls_of(both, [], until=1)["handoffs"] == ["billing"], "an SDK that records no transfer"
    assert calls_of(both, [], until=0)["handoffs"] == [], "and ended before the other agent was asked"


@given(st.permutations(range(6)), st.sets(st.integers(0, 5)))
def test_the_order_of_execution_never_matters_and_no_call_is_lost(order: list[int], skipped: set[int]) -> None:
    wanted = [Requested(f"t{place % 3}", place // 2, f"c{place}", {"n": place}) for place in range(6)]
    ran = [Executed(f"t{place % 3}", 10 + at, f"c{place}") for at, place in enumerate(order) if place not in skipped]
    found = calls_of(wanted, ran)
    assert [call["arguments"]["n"] for call in found["tool_calls"]] == [n for n in range(6) if n not in skipped]
    assert [call["arguments"]["n"] for call in found["requested_calls"]] == sorted(skipped)


@pytest.mark.parametrize(
    "answer",
    [
        {"choices": [{"message": {"tool_calls": [{"id": "c", "function": {"name": "a", "arguments": '{"x": 1}'}}]}}]},
        [{"type": "function_call", "call_id": "c", "id": "fc", "name": "a", "arguments": '{"x": 1}'}],
        {"content": [{"type": "text", "text": "hm"}, {"type": "tool_use", "id": "c", "name": "a", "input": {"x": 1}}]},
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "a", "arguments": {"x": 1}}]}],
        {"content": [{"type": "tool_use", "id": "c", "name": "a", "input": {"x": 1}}],
         "tool_calls": [{"id": "c", "name": "a", "args": {"x": 1}}]},
    ],
)  # fmt: skip
def test_requests_are_read_in_the_form_of_each_api_once(answer: Any) -> None:
    assert list(requests_in(answer, 3)) == [Requested("a", 3, "c", {"x": 1})]


def ai(*calls: str, **more: Any) -> dict[str, Any]:
    made = [{"name": name, "args": {}, "id": f"{more.get('id', '')}{name}", "type": "tool_call"} for name in calls]
    used = {"usage_metadata": {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}}
    return {"type": "ai", "content": "", "tool_calls": made, **used} | more


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool", "content": "ok", "tool_call_id": name, "name": name} | more


def test_langgraphs_messages_are_read_in_each_of_their_forms() -> None:
    human = {"type": "human", "content": "hi"}
    plain = [human, ai("a"), tool("a"), ai(content=[{"type": "text", "text": "Done."}])]
    classes = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
    nested = [{"type": one["type"], "data": one} for one in plain]
    dumped = [
        {"lc": 1, "type": "constructor", "id": ["x", classes[one["type"]]],
         "kwargs": {name: value for name, value in one.items() if name != "type"}}
        for one in plain
    ]  # fmt: skip
    for messages in (plain, nested, dumped):
        found = in_one_form({"messages": messages})
        assert found["output"] == "Done."
        assert found["tool_calls"] == [{"name": "a", "arguments": {}, "result": "ok"}]
        assert found["usage"] == {"input_tokens": 20, "output_tokens": 2, "total_tokens": 22}


def test_what_a_supervisor_writes_for_itself_is_no_models_call_and_no_handoff() -> None:
    back = {"response_metadata": {"__is_handoff_back": True}}
    written = [ai("transfer_back_to_supervisor", **back), tool("transfer_back_to_supervisor", **back)]
    found = in_one_form({"messages": [ai("transfer_to_math"), tool("transfer_to_math"), ai(content="4"), *written]})
    assert (found["handoffs"], len(found["llm_calls"]), found["tool_calls"]) == (["math"], 2, [])


def test_a_message_that_came_twice_counts_once_and_one_without_usage_makes_the_sum_unknown() -> None:
    twice = ai("a", id="m1")
    found = in_one_form({"messages": [twice, twice, tool("a", tool_call_id="m1a", id="m2"), ai(content="x", id="m3")]})
    assert (len(found["llm_calls"]), len(found["tool_calls"])) == (2, 1)
    streamed = ai(content="x", usage_metadata=None)
    assert trajectory_of(in_one_form({"messages": [ai("a"), tool("a"), streamed]})).usage is None


def test_a_call_with_arguments_that_can_not_be_parsed_was_asked_for_in_vain() -> None:
    bad = ai(invalid_tool_calls=[{"name": "delete", "args": "{broken", "id": "d", "type": "invalid_tool_call"}])
    found = in_one_form({"messages": [bad, ai(content="sorry")]})
    assert (found["tool_calls"], found["requested_calls"]) == ([], [{"name": "delete", "arguments": "{broken"}])


def agents_span(number: int, parent: int | None = None, error: Any = None, **data: Any) -> dict[str, Any]:
    at = f"2026-11-27T04:00:{number:02}.000000+00:00"
    return {"object": "trace.span", "id": f"s{number}", "trace_id": "t", "parent_id": f"s{parent}" if parent else None,
            "started_at": at, "ended_at": at, "error": error, "span_data": data}  # fmt: skip


def test_tools_that_the_models_provider_runs_are_calls_though_they_have_no_span() -> None:
    answer = {"id": "r1", "model": "m", "output": [
        {"type": "web_search_call", "id": "w", "status": "completed"},
        {"type": "mcp_call", "id": "x", "name": "lookup", "arguments": "{}", "output": "ok"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hm"}]},
    ]}  # fmt: skip
    found = in_one_form({"output": "hm", "spans": [agents_span(1, type="response", response=answer)]})
    assert [call["name"] for call in found["tool_calls"]] == ["web_search", "lookup"]


def test_responses_that_were_not_kept_leave_usage_and_calls_as_their_spans_have_them() -> None:
    spans = [
        agents_span(1, type="response", response_id="r1", usage={"input_tokens": 5, "output_tokens": 2}),
        agents_span(2, type="function", name="a", input='{"x": 1}', output="ok"),
        agents_span(3, type="handoff", from_agent="Triage", to_agent="Billing Agent"),
        agents_span(4, type="custom", name="turn", data={"usage": {"input_tokens": 5, "output_tokens": 2}}),
    ]
    found = trajectory_of(in_one_form({"output": "x", "spans": spans}))
    assert found.usage == {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    assert found.tool_calls == [{"name": "a", "arguments": {"x": 1}, "result": "ok"}]
    assert found.handoffs == ["Billing Agent"]


def opik_span(number: int, kind: str, **more: Any) -> dict[str, Any]:
    at = f"2026-11-27T04:00:{number:02}Z"
    return {"id": f"s{number}", "trace_id": "t", "type": kind, "name": kind, "start_time": at, "end_time": at} | more


def test_opiks_usage_is_that_of_its_model_spans_and_never_the_traces_own() -> None:
    used = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    spans = [
        opik_span(1, "general", usage=used),
        opik_span(2, "llm", usage=used, model="m", total_estimated_cost=0.5, output={"choices": []}),
        opik_span(3, "tool", name="a", input={"x": 1}, output={"output": "ok"}, error_info={"exception_type": "E"}),
        opik_span(4, "llm", usage=used, model="m", trace_id="another"),
    ]
    trace = {"id": "t", "output": {"output": "Done."}, "usage": {"total_tokens": 22}}
    found = trajectory_of(in_one_form({"spans": spans, "trace": trace}))
    assert found.usage == {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11, "cost_usd": 0.5}
    assert (found.output, found.tool_calls) == (
        "Done.", [{"name": "a", "arguments": {"x": 1}, "result": "ok", "error": "E"}]
    )  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        {"output": "x", "messages": [{"type": "ai", "tool_calls": "none"}, {"type": "tool"}]},
        {"output": "x", "messages": [{"type": "tool", "tool_call_id": ["x"]}]},
        {"output": "x", "spans": [{"object": "trace.span", "span_data": 7}]},
        {"output": "x", "spans": [{"trace_id": "t", "type": "llm", "start_time": "x", "usage": [1]}]},
        {"output": "x", "messages": []},
    ],
)
def test_what_can_not_be_read_is_unknown_or_empty_and_never_raises(answer: dict[str, Any]) -> None:
    assert trajectory_of(in_one_form(answer)).output == "x"


FIELDS = [
    "type",
    "data",
    "kwargs",
    "id",
    "name",
    "tool_calls",
    "args",
    "content",
    "status",
    "usage_metadata",
    "function",
    "trace_id",
    "start_time",
    "usage",
    "output",
    "error_info",
    "object",
    "span_data",
    "response",
    "error",
]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(['{"a": [', "[1]", '{"name": "a"}']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=20,
)


def objects(always: dict[str, Any], *sometimes: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    one = st.fixed_dictionaries(always, optional=dict.fromkeys(sometimes, JSON))
    return st.lists(one, min_size=1, max_size=4)


MESSAGES = objects(
    {"type": st.sampled_from(["ai", "tool", "human"])},
    "content", "tool_calls", "tool_call_id", "usage_metadata", "id", "response_metadata", "data",
)  # fmt: skip
EXPORTED = objects({"object": st.just("trace.span"), "span_data": JSON}, "id", "error")
TRACKED = objects(
    {"trace_id": JSON, "type": st.sampled_from(["llm", "tool"]), "start_time": JSON},
    "id", "usage", "output", "input", "error_info", "name", "total_estimated_cost",
)  # fmt: skip


@given(MESSAGES.map(lambda given: {"messages": given}) | (EXPORTED | TRACKED).map(lambda given: {"spans": given}))
def test_no_answer_makes_a_reader_raise(answer: dict[str, Any]) -> None:
    found = trajectory_of(in_one_form({"output": "x", **answer}))
    assert found.output == "x"
    assert found.tools is None or all(isinstance(name, str) for name in found.tools)


def test_hostile_attributes_of_spans_take_no_reader_down() -> None:
    deep = "[" * 900 + "]" * 900
    hostile = {
        "gen_ai.completion.0": "x", "gen_ai.completion.0.role": "y", "gen_ai.completion." + "9" * 5_000: "z",
        "gen_ai.completion." + "a." * 20_000: "deep", "gen_ai.input.messages": deep,
    }  # fmt: skip
    ran = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "a", "gen_ai.tool.call.result": deep}
    found = trace_of([model(1, **hostile), Span("t", "x", "", "x", 20, 21, ran)])
    assert found["tool_calls"] == [{"name": "a", "result": deep}], "a text that could not be written again stays one"


CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}


def model(number: int, **said: Any) -> Span:
    return Span("t", f"m{number}", "", "chat", number * 10, number * 10 + 5, CHAT | said, scope="s")


def wanting(*names: str) -> dict[str, Any]:
    parts = [{"type": "tool_call", "id": f"c{name}", "name": name, "arguments": {}} for name in names]
    return {"gen_ai.output.messages": [{"role": "assistant", "parts": parts}]}


def test_no_tool_span_means_no_call_only_where_the_models_say_that_they_asked_for_none() -> None:
    stopped = {"gen_ai.response.finish_reasons": ["stop"]}
    assert trace_of([model(1, **stopped)])["tool_calls"] == []
    assert "tool_calls" not in trace_of([model(1)]), "nothing is known"
    assert "tool_calls" not in trace_of([model(1, **stopped), model(2)]), "of one nothing is known"
    assert "tool_calls" not in trace_of([model(1, **wanting("a")), model(2, **stopped)]), (
        "something may have been called"
    )
    assert trace_of([model(1, **wanting("a"))])["tool_calls"] == [], "the agent ended there"


def test_where_models_alone_are_instrumented_what_they_are_given_says_what_was_executed() -> None:
    given = {"gen_ai.input.messages": [
        {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "ca", "response": "ok"}]},
    ]}  # fmt: skip
    found = trace_of([model(1, **wanting("a", "b")), model(2, **given, **wanting())])
    assert found["tool_calls"] == [{"name": "a", "arguments": {}, "result": "ok"}]
    assert found["requested_calls"] == [{"name": "b", "arguments": {}}]


def test_parts_that_are_sent_one_by_one_are_put_together() -> None:
    openinference = {
        "llm.output_messages.0.message.tool_calls.1.tool_call.function.name": "b",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "a",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"x": 1}',
    }
    found = trace_of([model(1, **openinference)])
    assert found["requested_calls"] == [{"name": "a", "arguments": {"x": 1}}, {"name": "b"}]


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        ({"tool_calls": "search"}, "tool_calls: must be a list"),
        ({"tool_calls": [{"tool": "search"}]}, "tool_calls.0.name: must be a text"),
        ({"handoffs": [7]}, "handoffs.0: must be a text"),
        ({"usage": 12}, "usage: must be an object"),
        ({"tool_calls": [], "spans_dropped": 3}, "spans: must be whole, got all but 3"),
    ],
)
def test_a_field_of_another_form_is_unknown_and_says_why(answer: dict[str, Any], field: str) -> None:
    found = trajectory_of(answer)
    assert (found.tools, found.usage) == (None, None)
    assert field in " ".join(found.unreadable.values())


def test_absent_is_unknown_and_empty_is_none() -> None:
    nothing = trajectory_of({"output": "x"})
    assert (nothing.tools, nothing.handoffs, nothing.llm_calls, nothing.usage) == (None, None, None, None)
    assert nothing.called("a") is None
    assert trajectory_of({"tool_calls": []}).called("a") is False


def test_spans_that_show_no_handoff_do_not_say_that_there_was_none() -> None:
    looked = Span("t", "1", "", "x", 0, 1, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"})
    assert trajectory_of(trace_of([looked])).handoffs is None
    stopped = model(1, **{"gen_ai.response.finish_reasons": ["stop"]})
    assert trajectory_of(trace_of([stopped, looked])).handoffs == []


def test_a_transfer_among_plain_tool_calls_is_a_handoff_and_is_found_under_its_own_name() -> None:
    found = trajectory_of({"tool_calls": [{"name": "a"}, {"name": "transfer_to_BillingAgent"}]})
    assert (found.tools, found.handoffs) == (["a"], ["BillingAgent"])
    assert found.called("transfer_to_billing_agent"), "where a spec forbids it"
    apart = trajectory_of({"tool_calls": [{"name": "transfer_to_savings"}], "handoffs": []})
    assert apart.tools == ["transfer_to_savings"], "who says handoffs apart means a tool"


def test_agents_names_compare_without_case_and_separators() -> None:
    assert same_agent("BillingAgent", "billing_agent")
    assert same_agent("Billing agent", "BILLING-AGENT")
    assert not same_agent("billing", "billing_agent")


def test_input_that_anthropic_counts_apart_is_input() -> None:
    own = {"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": None, "output_tokens": 7}
    assert trajectory_of({"usage": own}).usage == {"input_tokens": 93, "output_tokens": 7, "total_tokens": 100}
    assert trajectory_of({"llm_calls": [{"model": "m", **own}] * 2}).usage == {
        "input_tokens": 186, "output_tokens": 14, "total_tokens": 200
    }  # fmt: skip


def test_a_sum_is_what_all_calls_say_and_an_answers_own_usage_stands() -> None:
    both = [{"model": "m", "input_tokens": 1, "output_tokens": 2}, {"model": "m", "input_tokens": 3}]
    assert trajectory_of({"llm_calls": both}).usage == {"input_tokens": 4}
    stated = trajectory_of(
        {"llm_calls": both, "usage": {"total_tokens": 9, "cost_usd": float("nan")}, "cost_usd": 0.25}
    )
    assert stated.usage == {"input_tokens": 4, "total_tokens": 9, "cost_usd": 0.25}
