"""Answers by a script, turn by turn, with tool calls: what an agent needs of a model to be run without one.

A script is chosen by a text in the user's first message; the turn is how many answers the conversation has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rampgate.local.model.wire import completion, labelled


class ScriptedCall(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class Turn(BaseModel):
    """One answer: a text, or calls in parallel. Tokens that are not said are counted of the texts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    input_tokens: int | None = Field(None, ge=0)
    output_tokens: int | None = Field(None, ge=0)


class Script(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    when: str = ""
    """A text in the user's first message."""
    turns: tuple[Turn, ...] = Field(min_length=1)
    """The last one is repeated."""


def turn_of(scripts: Sequence[Script], messages: Sequence[Mapping[str, Any]]) -> tuple[int, Turn] | None:
    """Returns the turn of the conversation and its number; None where no script fits. `messages` are those of chat
    completions, or the input of responses."""
    asked = next((_text(one.get("content")) for one in messages if one.get("role") == "user"), "")
    script = next((one for one in scripts if one.when in asked), None)
    if script is None:
        return None
    answered, own = 0, False
    for one in messages:
        before, own = own, one.get("role") == "assistant" or one.get("type") in ("function_call", "reasoning")
        answered += own and (not before or one.get("role") == "assistant")
    return answered, script.turns[min(answered, len(script.turns) - 1)]


def chat(asked: dict[str, Any], model: str, number: int, turn: Turn) -> dict[str, Any]:
    """Returns the turn as a chat completion."""
    made = completion(asked, model, turn.text)
    if turn.calls:
        made["choices"][0]["finish_reason"] = "tool_calls"
        made["choices"][0]["message"] |= {
            "content": turn.text or None,
            "tool_calls": [
                {"id": found, "type": "function", "function": {"name": name, "arguments": arguments}}
                for found, name, arguments in _calls(number, turn)
            ],
        }
    usage = made["usage"]
    used = {"prompt_tokens": turn.input_tokens, "completion_tokens": turn.output_tokens}
    usage |= {name: count for name, count in used.items() if count is not None}
    usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
    return made


def response(asked: dict[str, Any], model: str, number: int, turn: Turn) -> dict[str, Any]:
    """Returns the turn as a response of OpenAI's API of that name."""
    same = chat({"messages": items_of(asked)}, model, number, turn)
    output: list[dict[str, Any]] = [
        {"type": "function_call", "id": f"fc_{found}", "call_id": found, "name": name, "arguments": arguments,
         "status": "completed"}
        for found, name, arguments in _calls(number, turn)
    ]  # fmt: skip
    if turn.text:
        text = {"type": "output_text", "text": turn.text, "annotations": []}
        output.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed",
                       "content": [text]})  # fmt: skip
    usage = same["usage"]
    return {
        "id": f"resp_{same['id']}_{number}", "object": "response", "created_at": 0, "status": "completed",
        "model": labelled(model), "output": output, "parallel_tool_calls": True, "tool_choice": "auto",
        "tools": asked.get("tools") or [], "error": None, "incomplete_details": None, "instructions": None,
        "metadata": {}, "temperature": 0.0, "top_p": 1.0,
        "usage": {
            "input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"], "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }  # fmt: skip


def items_of(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the items of a conversation that a request for a response has."""
    given = asked.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else [dict(one) for one in given or ()]


def _calls(number: int, turn: Turn) -> list[tuple[str, str, str]]:
    """Of each call its id, name and arguments, as they are sent."""
    return [(f"call_{number}_{place}", one.name, json.dumps(one.arguments)) for place, one in enumerate(turn.calls)]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return str(content)
