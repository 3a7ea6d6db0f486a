"""Routes a customer's message to the agent that answers it, by the words that `routes.json` has of each route.

A route has word stems; the message goes to the route with the most of them, and to none where it has none of any: then
it is off topic. What the tools return is made up; nothing leaves the machine.
"""

import json
import re
from pathlib import Path

ROUTES = json.loads(Path(__file__).with_name("routes.json").read_text())
PRICES = json.loads(Path(__file__).with_name("prices.json").read_text())
MODEL = "gpt-4.1-nano"
DOUBLED = {"ed", "ing", "ation"}
ENDINGS = {"e", "s", "es", "ed", "ing", "er", "ers", "ation", "ment", "ments", "ion", "y"}
ANSWERS = {
    "cancel_subscription": "Your subscription ends with the current period; a confirmation is on its way.",
    "refund_payment": "The payment goes back to the card that it came from within five days.",
    "get_invoice": "The document is in your mailbox and under Billing in your settings.",
    "change_plan": "The new plan begins today; the difference is on your next bill.",
    "check_service_status+get_technical_documentation": (
        "All services run. The documentation has steps for this: update the app, then clear its data."
    ),
    "check_service_status": "All services run at this moment; the status page shows the last thirty days.",
    "get_technical_documentation": "The documentation has a page on this, with an example that you can copy.",
    "reset_password": "A link with which you choose a new one is in your mailbox; it holds for an hour.",
    "update_account": "Your account has the new data.",
    "delete_account": "Your account and its data will be gone in thirty days; until then you can call it off.",
    "track_order": "It is with the courier, and is due tomorrow.",
    "start_return": "A label for sending it is in your mailbox.",
}
DECLINE = "I am sorry, I can only help with questions about your account, orders, payments and the app."


def answer(case):
    message = case["input"]
    target, tools = route(message)
    names = tools.split("+") if tools else []
    said = ANSWERS[tools] if tools else DECLINE
    calls = [model_call(message, target or "none"), model_call(f"{message} {' '.join(names)}", said)]
    return {
        "output": said,
        "tool_calls": [{"name": name, "arguments": {}, "result": "ok"} for name in names],
        "handoffs": [target] if target else [],
        "llm_calls": calls,
        "usage": {
            "total_tokens": sum(call["input_tokens"] + call["output_tokens"] for call in calls),
            "cost_usd": sum(call["cost_usd"] for call in calls),
        },
    }


def model_call(prompt, said):
    """A call of the simulated model, whose tokens are words."""
    read, written = len(prompt.split()), len(said.split())
    price = PRICES["models"][MODEL]
    dollars = read * price["usd_per_million_input_tokens"] + written * price["usd_per_million_output_tokens"]
    return {"model": MODEL, "input_tokens": read, "output_tokens": written, "cost_usd": dollars / 1e6}


def route(message):
    """The agent and its tools, or None and no tools where no route has a word of the message."""
    words = re.findall(r"[a-z]+", message.lower())
    scores = {
        (target, tools): sum(any(is_form(word, stem) for stem in stems) for word in words)
        for target, routes in ROUTES.items()
        for tools, stems in routes.items()
    }
    best = max(scores, key=scores.get)
    return best if scores[best] else (None, "")


def is_form(word, stem):
    """Whether the word is the stem or a form of it: `crashing` is one of `crash`, `endless` none of `end`."""
    base = stem.removesuffix("e")
    if word == stem:
        return True
    if word.startswith(base + base[-1]) and word.removeprefix(base + base[-1]) in DOUBLED:
        return True
    return word.startswith(base) and word.removeprefix(base) in ENDINGS
