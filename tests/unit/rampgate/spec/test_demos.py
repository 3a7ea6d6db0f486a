"""The demo agents (AgentCI Step 5, Step 6): what they call and cost, without a run of the suite's own."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalcore.trajectory.metrics import loops
from rampgate.suite.spec_files import reading_of
from tests.root import ROOT

DEMOS = ROOT / "examples"
RULE = (
    "First qualify the question: where it is about something other than AgentCI, decline at once, without any search "
    "at all."
)
"""What the playbook has the reader add to the prompt."""
PARAPHRASES = {
    "cancel": "Please terminate my subscription",
    "cancel-renewal": "I'd like to quit before the next renewal",
    "cancel-trial": "Can the free trial be cancelled early?",
    "double-charge": "There is a duplicate payment for March on my card",
    "refund": "Will you reimburse what I paid last week?",
    "money-back": "I did not like the course and want to be refunded",
    "invoice": "I need April's bill as a PDF",
    "receipt": "My company's tax office asks for the receipt",
    "upgrade": "Which plan has more seats, and can I get on it?",
    "downgrade": "We are fewer people now and want to downgrade",
    "crash": "The app crashes whenever I sign in",
    "freeze": "The dashboard hangs after a few seconds",
    "error": "Saving fails with some error code",
    "outage": "Are your servers down in Europe?",
    "slow": "The site is nearly unreachable today",
    "api": "Is there any documentation for developers?",
    "webhook": "Which SDK sends me events about new orders?",
    "export": "I want to import a CSV of contacts",
    "forgot-password": "My passcode no longer comes to my mind, I forgot it",
    "locked": "It says my credentials are wrong and I am locked out",
    "change-email": "I have a new email, can you put it in?",
    "change-address": "Could you update my postal address?",
    "change-name": "My profile shows my maiden name",
    "delete": "Please erase all of my data",
    "close-account": "Under GDPR I ask you to forget me",
    "track": "When will my package arrive?",
    "late": "The courier has not delivered yet",
    "return": "How can I exchange these shoes?",
    "damaged": "The lamp that you sent is defective",
    "meaning": "Why do we exist at all?",
    "poem": "Could you compose some verses on the fall?",
    "politics": "Which party is going to govern?",
}
"""The router's queries in other words."""


def agent(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"demo_{folder.name}", folder / "agent.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def queries(name: str) -> dict[str, dict[str, Any]]:
    found = yaml.safe_load((DEMOS / name / "agentci_spec.yaml").read_text())["queries"]
    return {one["id"]: one for one in found}


def rag(*, fixed: bool, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = agent(DEMOS / "rag")
    if fixed:
        monkeypatch.setattr(module, "PROMPT", f"{module.PROMPT}\n{RULE}\n")
        monkeypatch.setattr(module, "QUALIFIES", True)
    return module


def asked(module: Any, question: str) -> dict[str, Any]:
    found: dict[str, Any] = module.answer({"input": question, "configuration": {"pace": "0"}})
    return found


def tools(answer: dict[str, Any]) -> list[str]:
    return [call["name"] for call in answer["tool_calls"]]


def test_the_broken_agent_searches_for_the_weather(monkeypatch: pytest.MonkeyPatch) -> None:
    """11 calls, none forbidden, of at least two tools, with 3 loops; 11 model calls, since one turn asks for two tools;
    4,200 tokens; $0.0080 by the table of prices."""
    weather = queries("rag")["weather"]
    found = asked(rag(fixed=False, monkeypatch=monkeypatch), weather["query"])
    assert len(tools(found)) == 11
    assert not {*tools(found)} & {*weather["path"]["forbidden_tools"]}
    assert len({*tools(found)}) == 2
    assert loops(tools(found)) == 3
    assert len(found["llm_calls"]) == 11
    assert found["usage"]["total_tokens"] == 4200
    assert f"{found['usage']['cost_usd']:.4f}" == "0.0080"
    assert not [word for word in weather["correctness"]["not_in_answer"] if word in found["output"].lower()]


def test_the_fixed_agent_declines_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No call of a tool, one of the model, 180 tokens, $0.0001."""
    found = asked(rag(fixed=True, monkeypatch=monkeypatch), queries("rag")["weather"]["query"])
    assert tools(found) == []
    assert len(found["llm_calls"]) == 1
    assert found["usage"]["total_tokens"] == 180
    assert f"{found['usage']['cost_usd']:.4f}" == "0.0001"


@pytest.mark.parametrize("fixed", [False, True])
def test_a_question_that_documents_cover_is_answered_from_them(fixed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked(rag(fixed=fixed, monkeypatch=monkeypatch), queries("rag")["install"]["query"])
    assert "pip install" in found["output"]
    assert tools(found) == ["retriever_tool"]
    assert found["retrieval"] == [found["output"]]


def test_costs_follow_from_the_dated_table_of_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    prices = json.loads((DEMOS / "rag" / "prices.json").read_text())
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", prices["as_of"])
    found = asked(rag(fixed=False, monkeypatch=monkeypatch), "What's the weather in Tokyo?")
    model = prices["models"]["gpt-4.1-mini"]
    dollars = sum(
        call["input_tokens"] * model["usd_per_million_input_tokens"] / 1e6
        + call["output_tokens"] * model["usd_per_million_output_tokens"] / 1e6
        for call in found["llm_calls"]
    ) + sum(prices["tools"][name]["usd_per_call"] for name in tools(found))
    assert found["usage"]["cost_usd"] == pytest.approx(dollars)


def routed(query: dict[str, Any]) -> tuple[list[str], list[str]]:
    path = query["path"]
    return [path["expected_handoff"]] if "expected_handoff" in path else [], path.get("expected_tools", [])


# AgentCI Step 6 box 1.
def test_32_queries_cover_every_route() -> None:
    router, found = agent(DEMOS / "support-router"), queries("support-router")
    assert len(found) == 32
    routes = [routed(one) for one in found.values()]
    covered = {(*targets, *names) for targets, names in routes if targets}
    every = {(target, *names.split("+")) for target, routes in router.ROUTES.items() for names in routes}
    assert covered == every
    assert any("guardrail" in one["tags"] for one in found.values())


def test_each_query_takes_its_route() -> None:
    router = agent(DEMOS / "support-router")
    for one in queries("support-router").values():
        found = router.answer({"input": one["query"]})
        assert (found["handoffs"], tools(found)) == routed(one), one["id"]


def test_28_of_32_paraphrases_take_the_same_route() -> None:
    router, found = agent(DEMOS / "support-router"), queries("support-router")
    assert PARAPHRASES.keys() == found.keys()
    same = 0
    for name, words in PARAPHRASES.items():
        assert words != found[name]["query"]
        answer = router.answer({"input": words})
        same += (answer["handoffs"], tools(answer)) == routed(found[name])
    assert same >= 28


@pytest.mark.parametrize("name", ["rag", "support-router", "dev-agent"])
def test_no_agent_holds_the_text_of_a_query(name: str) -> None:
    folder = DEMOS / name
    held = "\n".join(path.read_text() for path in folder.rglob("*") if path.suffix in {".py", ".json", ".md", ".sh"}
                     and path.parent.name != "baselines" and path.name != "PLAYBOOK.md").lower()  # fmt: skip
    for one in queries(name).values():
        assert one["query"].lower() not in held


# AgentCI Step 5 box 1, Step 6 box 2.
@pytest.mark.parametrize("name", ["rag", "support-router", "dev-agent"])
def test_each_demos_spec_is_valid(name: str) -> None:
    found = reading_of(DEMOS / name / "agentci_spec.yaml")
    assert found.spec is not None, found.findings
    assert found.spec.candidate is not None
    assert not found.findings


# AgentCI Step 6 box 2.
def test_the_deterministic_agent_calls_no_model() -> None:
    module = agent(DEMOS / "dev-agent")
    for one in queries("dev-agent").values():
        found = module.answer({"input": one["query"]})
        assert found["llm_calls"] == []
        assert found["usage"]["cost_usd"] == 0.0


# AgentCI Step 5 box 2, Step 5 box 3.
def test_the_recorded_baselines_have_the_storys_figures() -> None:
    """Each follows from a formula: calls, loops, tokens, dollars; latency is measured, 8,200 and 1,100 ms ± 5 %."""
    found = {}
    for version in ("v1-broken", "v2-fixed"):
        told = json.loads((DEMOS / "rag" / "baselines" / f"{version}.json").read_text())
        trace = told["queries"]["weather"]["trace"]
        names = tools(trace)
        found[version] = (len(names), loops(names), len(trace["llm_calls"]), trace["usage"]["total_tokens"])
        found[version] += (f"{trace['usage']['cost_usd']:.4f}",)
        turns = len(trace["llm_calls"]) - 1
        assert trace["latency_ms"] == pytest.approx(turns * (560 + 150) + 1_100, rel=0.05)
        assert told["metadata"]["precheck_passed"] is True
    assert found == {"v1-broken": (11, 3, 11, 4200, "0.0080"), "v2-fixed": (0, 0, 1, 180, "0.0001")}


# AgentCI Step 5 box 4.
def test_the_playbook_names_commands_that_there_are() -> None:
    from rampgate.cli import COMMANDS

    text = (DEMOS / "rag" / "PLAYBOOK.md").read_text()
    named = set(re.findall(r"rampgate ((?:spec|suite) [a-z-]+)", text))
    assert {"spec validate", "spec test", "spec save", "spec diff", "spec export-metrics"} <= named <= {*COMMANDS}
    assert RULE in text
