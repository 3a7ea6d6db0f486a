"""Answers from the documents in `docs`, with a model and two tools that are simulated: no key, no network.

The model follows `prompt.md`: where a rule there has it qualify the question first, it declines what the documents do
not cover at once; without one it searches until it may search no more. Sizes and times below are those of the simulated
model, so that figures are the same on every machine; what they cost is in `prices.json`.
"""

import json
import re
import time
from pathlib import Path

HERE = Path(__file__).parent
PROMPT = (HERE / "prompt.md").read_text()
DOCUMENTS = [path.read_text() for path in sorted((HERE / "docs").glob("*.md"))]
PRICES = json.loads((HERE / "prices.json").read_text())
MODEL = "gpt-4.1-mini"
QUALIFIES = re.search(r"\bdecline at once\b", PROMPT) is not None
MOST_CALLS = 11
COVERED = 0.6
"""Share of a question's words that the documents have, from which on they cover it."""
RESULT_TOKENS, CALL_TOKENS = 38, 20
"""Tokens that a tool's result adds to the prompt, and that the model writes to call tools in one turn."""
TURN_SECONDS, ANSWER_SECONDS, TOOL_SECONDS = 0.56, 1.1, 0.15
SMALL = frozenset(re.findall(r"\S+", """
    a an and are do does how i in is it me my of on or s the to what when where which who why you
"""))  # fmt: skip
DECLINE = (
    "I am sorry, that is outside what I can answer from my documents; "
    "with questions about AgentCI itself I am glad to help."
)


def answer(case):
    return Conversation(case["input"], float(case["configuration"]["pace"])).run()


class Conversation:
    def __init__(self, question, pace):
        self.question, self.pace = question, pace
        self.llm_calls, self.tool_calls, self.found = [], [], []

    def run(self):
        words = keywords(self.question)
        if QUALIFIES and share_covered(words) < COVERED:
            return self.answered(DECLINE)
        while not self.found and len(self.tool_calls) < MOST_CALLS:
            for tools in self.plan():
                self.turn(tools[: MOST_CALLS - len(self.tool_calls)])
        return self.answered(self.found[0] if self.found else DECLINE)

    def plan(self):
        """The turns of a round, each with its tools: at first both at once, later one after the other."""
        if not self.tool_calls:
            covered = share_covered(keywords(self.question)) >= COVERED
            return [["retriever_tool"]] if covered else [["retriever_tool", "rewrite_question"]]
        return [["retriever_tool"], ["retriever_tool"], ["rewrite_question"]]

    def turn(self, tools):
        self.model(CALL_TOKENS, TURN_SECONDS)
        for name in tools:
            self.tool_calls.append(self.called(name))
        self.wait(TOOL_SECONDS)  # calls of one turn run side by side

    def called(self, name):
        words = keywords(self.question)
        if name == "rewrite_question":
            return {"name": name, "arguments": {"question": self.question}, "result": " ".join(sorted(words))}
        best = max(DOCUMENTS, key=lambda text: share_in(words, text))
        if share_covered(words) >= COVERED:
            self.found.append(best)
        result = best if self.found else "no document covers this"
        return {"name": name, "arguments": {"query": self.question}, "result": result}

    def model(self, output_tokens, seconds):
        prompt = len(PROMPT.split()) + len(self.question.split()) + RESULT_TOKENS * len(self.tool_calls)
        price = PRICES["models"][MODEL]
        dollars = (
            prompt * price["usd_per_million_input_tokens"] + output_tokens * price["usd_per_million_output_tokens"]
        )
        call = {"model": MODEL, "input_tokens": prompt, "output_tokens": output_tokens, "cost_usd": dollars / 1e6}
        self.llm_calls.append(call)
        self.wait(seconds)

    def wait(self, seconds):
        time.sleep(seconds * self.pace)

    def answered(self, text):
        self.model(len(text.split()), ANSWER_SECONDS)
        tools = sum(PRICES["tools"][call["name"]]["usd_per_call"] for call in self.tool_calls)
        sums = {name: sum(call[name] for call in self.llm_calls) for name in ("input_tokens", "output_tokens")}
        return {
            "output": text,
            "tool_calls": self.tool_calls,
            "llm_calls": self.llm_calls,
            "handoffs": [],
            "retrieval": self.found,
            "usage": {
                **sums,
                "total_tokens": sum(sums.values()),
                "cost_usd": sum(call["cost_usd"] for call in self.llm_calls) + tools,
            },
        }


def keywords(text):
    return {word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in SMALL}


def share_in(words, text):
    return len(words & keywords(text)) / max(len(words), 1)


def share_covered(words):
    """The share of the words that one document has, the best."""
    return max(share_in(words, text) for text in DOCUMENTS)
