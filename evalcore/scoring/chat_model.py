"""A model behind any OpenAI-compatible endpoint, by its chat-completions call. An edge: its HTTP client is handed in.

It does not go through litellm, which Opik brings for the same: in a process that does other things too, that costs a
call seven times as much of the event loop, and its import another 150 MB (DECISIONS.md has the figures). The model's
key comes from the environment for callers who evaluate a gate without the services' settings (contracts §7).
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

from evalcore.judges.evaluator import Prompt
from evalcore.scoring.calls import CallFailed, Failure, Reply
from evalcore.scoring.http_client import LONGEST_ANSWER, TooLong
from schemas.foreign_words import foreign_words
from schemas.settings import read_secret

KEY = "RAMPGATE_MODEL_KEY"
PATH = "/chat/completions"
PRICE = "x-litellm-response-cost"
_OPTIONAL: Mapping[str, Sequence[str]] = {
    "response_format": ("response_format", "json_schema", "structured output"), "temperature": ("temperature",)
}  # fmt: skip
"""Parameters that a call can do without, and the words by which a refusal names them."""
log = logging.getLogger(__name__)


def model_key() -> str | None:
    return secret_of(KEY)


def secret_of(setting: str) -> str | None:
    """Returns the setting's secret, else the one in its file, as the settings do. Raises ValueError, without a word of
    the file's text, where the file holds none: every call would then be refused for no visible reason."""
    key, file = os.environ.get(setting), os.environ.get(f"{setting}_FILE")
    if key or not file:
        return key
    try:
        return read_secret(Path(file))
    except ValueError as error:
        raise ValueError(f"{setting}_FILE: {error}") from error


class Response(Protocol):
    """`headers` finds names in any case, as HTTP has them."""

    @property
    def status_code(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def content(self) -> bytes: ...


class Client(Protocol):
    """The part of httpx's client that is used here. Raises httpx's errors."""

    async def post(self, url: str, *, content: bytes, headers: Mapping[str, str]) -> Response: ...


class ChatModel:
    """`url` is what OpenAI's clients call the base URL, such as https://api.openai.com/v1. One call is one request."""

    def __init__(self, client: Client, url: str, key: str | None = None) -> None:
        self._client = client
        self._base = url.rstrip("/").removesuffix(PATH)
        self._url = self._base + PATH
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        self._refused: dict[str, frozenset[str]] = {}
        """What models refused of _OPTIONAL: a response format, where the prompt and the strict reading remain; and a
        temperature, since OpenAI's reasoning models take none but their own."""

    def source(self, model: str) -> str:
        return self._base

    async def complete(self, asked: Prompt) -> Reply:
        sent = frozenset(_OPTIONAL) - self._refused.get(asked.model, frozenset())
        response = await self._post(_body(asked, sent))
        while response.status_code in (400, 422) and (named := _named(response, sent)):
            if named not in (known := self._refused.get(asked.model, frozenset())):
                log.warning("model_refuses_parameter: %s is asked without %s", asked.model, named)
                self._refused[asked.model] = known | {named}
            sent -= {named}
            response = await self._post(_body(asked, sent))
        if response.status_code != 200:
            raise self._failure(response)
        return _reply(response)

    async def _post(self, body: bytes) -> Response:
        import httpx

        try:
            return await self._client.post(self._url, content=body, headers=self._headers)
        except TooLong as error:
            raise CallFailed(Failure.SLIP, f"the model's answer has more than {LONGEST_ANSWER >> 20} MB") from error
        except httpx.TimeoutException as error:
            raise CallFailed(Failure.TIMEOUT, f"the model gave no answer in time ({type(error).__name__})") from error
        except (httpx.HTTPError, OSError) as error:
            raise CallFailed(Failure.UNREACHABLE, f"the model can't be reached ({type(error).__name__})") from error

    def _failure(self, response: Response) -> CallFailed:
        status = response.status_code
        told = f"the model's server answers {status}: {foreign_words(_message(response))}"
        return CallFailed(kind_of(status), told, retry_after(response.headers))


def kind_of(status: int) -> Failure:
    """Returns the failure that an HTTP status means."""
    if status == 429:
        return Failure.RATE_LIMITED
    if status in (401, 403):
        return Failure.UNAUTHORIZED
    if status in (408, 504):
        return Failure.TIMEOUT
    return Failure.UNAVAILABLE if status >= 500 or status in (409, 425) else Failure.REFUSED


def retry_after(headers: Mapping[str, str]) -> float:
    """Returns the seconds to wait; 0 where the server names none, or a date: clocks differ."""
    value = headers.get("retry-after", "")
    return float(value) if value.replace(".", "", 1).isdecimal() and value.isascii() else 0.0


def _body(asked: Prompt, sent: frozenset[str]) -> bytes:
    body: dict[str, Any] = {"model": asked.model, "messages": list(asked.messages)}
    if "temperature" in sent:
        body["temperature"] = asked.temperature
    if "response_format" in sent:
        named = {"name": "judgement", "strict": True, "schema": asked.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    return json.dumps(body, ensure_ascii=False).encode(errors="replace")


def _reply(response: Response) -> Reply:
    """Reads the reply. Raises CallFailed: what is no chat completion, as a gateway's page, comes from no model."""
    found = _json(response)
    try:
        choice = found["choices"][0]
        message = choice["message"]
        text = said(message.get("content"), message.get("refusal"), choice.get("finish_reason"))
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise CallFailed(Failure.UNAVAILABLE, "the model's server answers 200 without a chat completion") from error
    usage = found.get("usage")
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    counted = isinstance(tokens, int) and not isinstance(tokens, bool) and tokens >= 0
    return Reply(text, tokens if counted else None, _dollars(usage, response.headers))


def _dollars(usage: Any, headers: Mapping[str, str]) -> float | None:
    """Returns what the server says the call cost: OpenRouter's `usage.cost`, or the header of a LiteLLM proxy."""
    told = usage.get("cost") if isinstance(usage, dict) else None
    told = told if told is not None else headers.get(PRICE)
    try:
        cost = float(told) if isinstance(told, (int, float, str)) and not isinstance(told, bool) else None
    except ValueError:
        return None
    return cost if cost is not None and isfinite(cost) and cost >= 0 else None


def said(content: Any, refusal: Any, finish: Any) -> str:
    """Returns the text of a model's message. Raises CallFailed where there is none, where the model refused, and where
    a filter has cut the text. Who has used up its tokens without a text would do so again."""
    if refusal:
        raise CallFailed(Failure.SLIP, "the model refused to answer")
    if finish == "content_filter":
        raise CallFailed(Failure.SLIP, "the model's answer was cut by a content filter")
    if not isinstance(content, str) or not content.strip():
        kind = Failure.SLIP if finish == "length" else Failure.UNAVAILABLE
        raise CallFailed(kind, f"the model ended without a text ({foreign_words(str(finish))})")
    return content


def _json(response: Response) -> Any:
    try:
        return json.loads(response.content)
    except (ValueError, RecursionError):
        return None


def _message(response: Response) -> str:
    found = _json(response)
    error = found.get("error", found) if isinstance(found, dict) else None
    text = error.get("message") if isinstance(error, dict) else error
    return text if isinstance(text, str) and text else "no message"


def _named(response: Response, sent: frozenset[str]) -> str | None:
    """Returns the first of the parameters sent that the refusal names, None where it names none of them."""
    text = response.content[:4_000].decode(errors="replace").lower()
    return next((name for name in _OPTIONAL if name in sent and any(word in text for word in _OPTIONAL[name])), None)
