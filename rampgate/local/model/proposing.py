"""Answers the question of `rampgate optimize` for other prompts: the current one with a rule more, or what it was told.
Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

RULE = "Answer step by step, and name the next step."


def asked_for_variants(response_format: Any) -> bool:
    """Tells by the schema of the answer whether prompts are asked for, and no score."""
    try:
        return "variants" in response_format["json_schema"]["schema"]["properties"]
    except (KeyError, TypeError):
        return False


def variants(messages: Sequence[Mapping[str, Any]], told: Sequence[Any] | None) -> str:
    """Returns the answer: `told`, else the current prompt with RULE at its end."""
    if told is not None:
        return json.dumps({"variants": list(told)})
    current = next((one for line in str(messages[-1].get("content")).splitlines() if (one := _prompt(line))), "")
    about = "Stand-in, no language model: a rule more."
    return json.dumps({"variants": [{"prompt": f"{current.rstrip()}\n{RULE}\n", "rationale": about}]})


def _prompt(line: str) -> str:
    try:
        return str(json.loads(line)["current_prompt"])
    except (ValueError, KeyError, TypeError):
        return ""
