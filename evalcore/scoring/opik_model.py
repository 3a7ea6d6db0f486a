"""Calls a model through the layer that Opik brings (litellm), for providers without an OpenAI-compatible endpoint. An
edge.

Its import takes seconds: it happens at the first call, in a thread. Keys and addresses come from where litellm looks.
"""

from __future__ import annotations

import asyncio
import os
from functools import lru_cache
from importlib import import_module
from typing import Any

from evalcore.judges.evaluator import Prompt
from evalcore.scoring.calls import CallFailed, Failure, Model, Reply
from evalcore.scoring.chat_model import ChatModel, Client, kind_of, retry_after, said

LITELLM = "litellm:"


def model_at(url: str, client: Client, key: str | None = None) -> Model:
    """Returns the model behind a URL: an OpenAI-compatible endpoint, asked through `client`.

    `litellm:`, alone or before an address, goes through Opik's model layer instead, for providers without such an
    endpoint: the rule's model names the provider, and keys that are not given come from where litellm looks for them.
    """
    if not url.startswith(LITELLM):
        return ChatModel(client, url, key)
    options = {"api_base": url.removeprefix(LITELLM), "api_key": key}
    return OpikModel(**{name: value for name, value in options.items() if value})


class OpikModel:
    """A model by litellm; `options`, such as `api_base` and `api_key`, go to litellm with each call."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    def source(self, model: str) -> str:
        return f"opik:{self._options.get('api_base', '')}"

    async def complete(self, asked: Prompt) -> Reply:
        made = await asyncio.to_thread(_model, asked.model, asked.temperature, tuple(sorted(self._options.items())))
        named = {"name": "judgement", "strict": True, "schema": asked.schema}
        try:
            # Tries and times belong to evalcore.scoring.model_caller.
            found = await made.agenerate_provider_response(
                messages=list(asked.messages),
                response_format={"type": "json_schema", "json_schema": named},
                __opik_retries=1,
            )
        except Exception as error:
            raise failure(error) from error
        if not found.choices:
            raise CallFailed(Failure.UNAVAILABLE, "the model ended without an answer")
        choice = found.choices[0]
        text = said(
            choice.message.content, getattr(choice.message, "refusal", None), getattr(choice, "finish_reason", None)
        )
        usage = getattr(found, "usage", None)
        return Reply(text, getattr(usage, "total_tokens", None))


def failure(error: Exception) -> CallFailed:
    """Returns the failure that an error of litellm's means; they are named after OpenAI's and carry a status."""
    name, status = type(error).__name__, getattr(error, "status_code", None)
    response = getattr(error, "response", None)
    wait = retry_after(getattr(response, "headers", None) or {})
    if "Timeout" in name:
        kind = Failure.TIMEOUT
    elif "Connection" in name or isinstance(error, OSError):
        kind = Failure.UNREACHABLE
    else:
        kind = kind_of(status) if isinstance(status, int) else Failure.REFUSED
    return CallFailed(kind, f"the model's call failed ({name}{f', status {status}' if status else ''})", wait)


@lru_cache(maxsize=64)
def _model(name: str, temperature: float, options: tuple[tuple[str, Any], ...]) -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else importing litellm fetches prices from GitHub
    layer = import_module("opik.evaluation.models.litellm.litellm_chat_model")
    return layer.LiteLLMChatModel(name, track=False, temperature=temperature, **dict(options))
