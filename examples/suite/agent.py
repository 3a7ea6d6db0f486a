"""A candidate for the example: it looks its answer up in its prompt, as an agent would ask a model."""

from pathlib import Path

PROMPT = Path(__file__).with_name("prompt.md").read_text()


def answer(case):
    question = case["input"].lower()
    rules = dict(line.rstrip(".").split(": ") for line in PROMPT.replace(". ", ".\n").splitlines() if ": " in line)
    kind = next((name for name in rules if name.lower() in question), "All else")
    polite = "" if case["configuration"]["tone"] == "short" else "Thank you for asking. "
    return {"output": f"{polite}You have {rules[kind]} to return it.", "prompt": PROMPT}
