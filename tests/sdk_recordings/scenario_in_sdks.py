"""Runs one scenario in a real SDK and prints what that SDK writes down of it, as JSON.

Runs in an environment that has the SDKs and nothing of ours: `python scenario_in_sdks.py WAY MODEL_URL OPIK_URL`.
Nothing leaves the machine: the model is the stand-in, exporters that post to their vendors are replaced.
"""

import asyncio
import json
import os
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ |= {"LANGSMITH_TRACING": "false", "OPENAI_API_KEY": "none", "OPIK_CHECK_TLS_CERTIFICATE": "false"}
warnings.simplefilter("ignore", DeprecationWarning)
SCENARIO = json.loads(Path(__file__).with_name("scenario.json").read_text())
QUESTION, MODEL = SCENARIO["question"], "gpt-5-mini"
tries = 0


def order_status(order: str) -> str:
    """Where an order is."""
    time.sleep(0.05)  # the first of two parallel calls ends last
    return f"{order} is on its way"


def carrier_events(order: str) -> str:
    """What the carrier says of an order."""
    return f"{order} was lost"


def find_payment(order: str) -> str:
    """The payment of an order."""
    global tries
    tries += 1
    if tries == 1:
        raise TimeoutError("the ledger did not answer")
    return "P-9"


def refund(payment: str) -> str:
    """Pay back a payment."""
    return f"{payment} is paid back"


TRIAGE, BILLING = (order_status, carrier_events, find_payment), (refund,)


def openai_agents(url: str, api: str) -> dict[str, Any]:
    from openai import AsyncOpenAI

    from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
    from agents.tracing import TracingProcessor, set_trace_processors

    spans: list[dict[str, Any]] = []

    class Keep(TracingProcessor):
        def on_trace_start(self, trace: Any) -> None: ...
        def on_span_start(self, span: Any) -> None: ...
        def shutdown(self) -> None: ...
        def force_flush(self) -> None: ...

        def on_trace_end(self, trace: Any) -> None:
            spans.append(trace.export())

        def on_span_end(self, span: Any) -> None:
            kept = span.export()
            if (response := getattr(span.span_data, "response", None)) is not None:
                kept["span_data"]["response"] = response.model_dump(mode="json")
            spans.append(kept)

    set_trace_processors([Keep()])
    client = AsyncOpenAI(base_url=url, api_key="none")
    made = OpenAIResponsesModel if api == "responses" else OpenAIChatCompletionsModel
    model = made(model=MODEL, openai_client=client)
    billing = Agent(name="Billing Agent", model=model, tools=[function_tool(one) for one in BILLING])
    triage = Agent(name="Triage", model=model, tools=[function_tool(one) for one in TRIAGE], handoffs=[billing])
    result = Runner.run_sync(triage, QUESTION)
    return {"output": result.final_output, "spans": spans}


def langgraph(url: str) -> dict[str, Any]:
    from typing import Annotated

    from langchain.agents import AgentState, create_agent
    from langchain.agents.middleware import wrap_tool_call
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import InjectedToolCallId, tool
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, StateGraph
    from langgraph.prebuilt import InjectedState
    from langgraph.types import Command

    @tool("transfer_to_billing_agent", description="Hand over to billing.")
    def transfer(
        state: Annotated[AgentState, InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
    ) -> Command[Any]:
        said = ToolMessage("Handed over.", tool_call_id=tool_call_id, name="transfer_to_billing_agent")
        return Command(goto="billing_agent", graph=Command.PARENT, update={"messages": [*state["messages"], said]})

    @wrap_tool_call
    def tell_failures(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except TimeoutError as error:
            return ToolMessage(str(error), tool_call_id=request.tool_call["id"], status="error")

    model = ChatOpenAI(model=MODEL, base_url=url, api_key="none", max_retries=0)
    triage = create_agent(model, [tool(one) for one in TRIAGE] + [transfer], middleware=[tell_failures])
    billing = create_agent(model, [tool(one) for one in BILLING])
    graph = StateGraph(AgentState)
    graph.add_node("triage", triage, destinations=("billing_agent",))
    graph.add_node("billing_agent", billing)
    graph.add_edge(START, "triage")
    found = graph.compile().invoke({"messages": [{"role": "user", "content": QUESTION}]})
    return {"messages": [one.model_dump(mode="json") for one in found["messages"]]}


def opentelemetry(url: str, convention: int) -> dict[str, Any]:
    """Pydantic AI's spans: version 1 has the conventions up to 1.36, later ones today's."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from pydantic_ai import Agent, InstrumentationSettings, ModelRetry, RunContext, ToolOutput
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings = InstrumentationSettings(tracer_provider=provider, version=convention)
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=url, api_key="none"))
    billing = Agent(model, name="billing_agent", tools=list(BILLING), instrument=settings)

    def may_be_retried(order: str) -> str:
        try:
            return find_payment(order)
        except TimeoutError as error:
            raise ModelRetry(str(error)) from error

    may_be_retried.__name__ = "find_payment"

    async def transfer_to_billing_agent(ctx: RunContext[None]) -> str:
        return (await billing.run(SCENARIO["billing"], usage=ctx.usage)).output

    triage = Agent(
        model, name="triage", tools=[order_status, carrier_events, may_be_retried], instrument=settings,
        output_type=[str, ToolOutput(transfer_to_billing_agent, name="transfer_to_billing_agent")],
    )  # fmt: skip
    result = asyncio.run(triage.run(QUESTION))
    return {"output": result.output, "otlp": MessageToDict(encode_spans(exporter.get_finished_spans()))}


def opik(url: str, opik_url: str) -> dict[str, Any]:
    """A loop of one's own, whose steps Opik's SDK tracks."""
    os.environ |= {"OPIK_URL_OVERRIDE": opik_url, "OPIK_WORKSPACE": "default", "OPIK_PROJECT_NAME": "sdk-recordings"}
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    import opik as sdk
    from openai import OpenAI
    from opik.integrations.openai import track_openai

    client = track_openai(OpenAI(base_url=url, api_key="none"))
    tools = {one.__name__: sdk.track(type="tool")(one) for one in (*TRIAGE, *BILLING)}

    @sdk.track(type="tool")
    def transfer_to_billing_agent() -> str:
        return "Handed over."

    tools["transfer_to_billing_agent"] = transfer_to_billing_agent

    def executed(call: Any) -> dict[str, Any]:
        try:
            said = tools[call.function.name](**json.loads(call.function.arguments))
        except TimeoutError as error:
            said = f"failed: {error}"
        return {"role": "tool", "tool_call_id": call.id, "content": said}

    @sdk.track
    def answer(question: str) -> str:
        messages: list[Any] = [{"role": "user", "content": question}]
        with ThreadPoolExecutor() as pool:
            while True:
                said = client.chat.completions.create(model=MODEL, messages=messages).choices[0].message
                messages.append(said.model_dump(exclude_none=True))
                if not said.tool_calls:
                    return str(said.content)
                begun = [pool.submit(copy_context().run, executed, call) for call in said.tool_calls]
                messages += [one.result() for one in begun]

    answer(QUESTION)
    sdk.flush_tracker()
    return {}


WAYS = {
    "openai-agents-chat": lambda url, opik_url: openai_agents(url, "chat"),
    "openai-agents-responses": lambda url, opik_url: openai_agents(url, "responses"),
    "langgraph": lambda url, opik_url: langgraph(url),
    "opentelemetry-1.36": lambda url, opik_url: opentelemetry(url, 1),
    "opentelemetry": lambda url, opik_url: opentelemetry(url, 5),
    "opik": opik,
}
SDKS = ("openai-agents", "langgraph", "langchain", "langchain-openai", "pydantic-ai-slim", "opentelemetry-sdk", "opik")

if __name__ == "__main__":
    way, model_url, opik_address = sys.argv[1:]
    made = WAYS[way](model_url, opik_address)
    print(json.dumps(made | {"sdks": {name: version(name) for name in SDKS}}))
