"""Writes answers and refusals in the shape of OpenAI's chat completions, labelled as those of a stand-in."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from aiohttp import web

LABEL = "Rampgate's local model, a stand-in that answers by rule: no language model"
HEADER = "X-Stand-In"
FINGERPRINT = "rampgate-stand-in"


def labelled(model: str) -> str:
    return f"{model} (stand-in)"


def told_to_fail(status: int, retry_after: float | None) -> web.Response:
    code = "rate_limit_exceeded" if status == 429 else "told_to_fail"
    response = refusal(status, "The stand-in was told to fail", code)
    if retry_after is not None:
        response.headers["Retry-After"] = f"{retry_after:g}"
    return response


def refusal(status: int, message: str, code: str | None = None) -> web.Response:
    """An error in the shape of OpenAI's."""
    kind = "invalid_request_error" if status < 429 else "rate_limit_error" if status == 429 else "server_error"
    return web.json_response({"error": {"message": message, "type": kind, "param": None, "code": code}}, status=status)


def completion(asked: dict[str, Any], model: str, text: str) -> dict[str, Any]:
    """A completion with this text. It counts four characters as a token; the id is the request's hash."""
    raw = json.dumps(asked, sort_keys=True)
    prompt = sum(len(str(message.get("content"))) for message in asked["messages"]) // 4 + 1
    answer = len(text) // 4 + 1
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": f"chatcmpl-standin-{hashlib.sha256(raw.encode(errors='replace')).hexdigest()[:16]}",
        "object": "chat.completion",
        "created": 0,
        "model": labelled(model),
        "system_fingerprint": FINGERPRINT,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer},
    }
