"""Builds the application; `start` serves it in the caller's loop, for tests."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler
from pydantic import ValidationError

from rampgate.local.model import judging, scripted
from rampgate.local.model.behaviour import HEADER as BEHAVIOUR_HEADER
from rampgate.local.model.behaviour import Behaviour, Conduct, spoiled
from rampgate.local.model.gullible import obeyed
from rampgate.local.model.wire import FINGERPRINT, HEADER, LABEL, completion, refusal, told_to_fail

log = logging.getLogger(__name__)
MAX_BODY = 16 * 1024 * 1024
MODELS = ("gpt-5-mini", "gpt-5", "gpt-5-nano")
"""The models that `/v1/models` lists; every other name is answered too."""


class LocalModel:
    """`requests` counts answers by status; `busiest` is the highest number of requests at once. `hear` is told of each
    question's bytes."""

    def __init__(self, key: str | None = None, behaviour: Behaviour | None = None) -> None:
        self._key = key
        self._usual = Conduct(behaviour or Behaviour())
        self._told: Conduct | None = None
        self.requests: Counter[int] = Counter()
        self.busiest = self._now = 0
        self.hear: Callable[[bytes], object] = lambda content: None

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._say_what_it_is], client_max_size=MAX_BODY)
        for prefix in ("/v1", ""):
            app.router.add_post(f"{prefix}/chat/completions", self._complete)
            app.router.add_post(f"{prefix}/responses", self._respond)
            app.router.add_get(f"{prefix}/models", self._models)
        app.router.add_put("/_behaviour", self._tell)
        app.router.add_get("/_behaviour", self._show)
        app.router.add_delete("/_behaviour", self._forget)
        app.router.add_get("/_requests", self._counts)
        app.router.add_delete("/_requests", self._clear)
        app.router.add_get("/livez", self._live)
        return app

    def tell(self, behaviour: Behaviour | None) -> None:
        """Behave like this from now on; None: as at the start."""
        self._told = Conduct(behaviour) if behaviour is not None else None

    @web.middleware
    async def _say_what_it_is(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if request.path != "/livez" and self._key is not None and not self._allowed(request, self._key):
                response: web.StreamResponse = refusal(401, "Incorrect API key provided", "invalid_api_key")
            else:
                response = await handler(request)
        except web.HTTPException as error:
            response = refusal(error.status, f"The stand-in does not serve {request.method} {request.path}")
        response.headers[HEADER] = LABEL
        return response

    def _allowed(self, request: web.Request, key: str) -> bool:
        given = request.headers.get("Authorization", "").encode()
        return hmac.compare_digest(given, f"Bearer {key}".encode())

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self._now += 1
        self.busiest = max(self.busiest, self._now)
        try:
            response = await self._answer(request)
            self.requests[response.status] += 1
            return response
        finally:
            self._now -= 1

    async def _answer(self, request: web.Request) -> web.Response:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            conduct = self._conduct(request.headers.get(BEHAVIOUR_HEADER))
            content = await request.read()
            self.hear(content)
            asked = json.loads(content)
            messages = asked["messages"]
            model = asked["model"]
            sound = isinstance(messages, list) and all(isinstance(one, dict) for one in messages) and messages
            if not sound or not isinstance(model, str):
                raise ValueError("messages must be a list of objects and model a text")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return refusal(400, f"Not a chat completion request: {type(error).__name__}: {str(error)[:200]}")
        if asked.get("stream"):
            return refusal(400, "The stand-in does not stream")
        wanted, acts = conduct.behaviour, conduct.acts()
        turn = scripted.turn_of(wanted.scripts, messages)
        both = judging.asked_for_the_better(messages) if turn is None else None
        form = asked.get("response_format")
        answer = {} if turn else judging.better(*both) if both else judging.answer(messages, form)
        if both is not None and wanted.prefers is not None:
            answer["score"] = wanted.prefers
        await asyncio.sleep(max(0.0, began + wanted.latency_seconds - loop.time()))
        if acts and wanted.drop:
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        if acts and wanted.status is not None:
            return told_to_fail(wanted.status, wanted.retry_after)
        if turn is not None:
            return web.json_response(scripted.chat(asked, model, *turn))
        if judging.asked_for_variants(form):
            proposed = judging.variants(messages, wanted.variants)
            return web.json_response(completion(asked, model, proposed if not acts or not wanted.wrong else "so be it"))
        believed = wanted.gullible and obeyed(wanted.gullible, messages, form, answer)
        text = believed or json.dumps(answer)
        if acts and wanted.wrong == "no_completion":
            return web.json_response({"object": "stand-in", "choices": []})
        if acts and wanted.wrong is not None:
            text = spoiled(answer, wanted.wrong, judging.highest(messages, asked.get("response_format")))
        return web.json_response(completion(asked, model, text))

    async def _respond(self, request: web.Request) -> web.Response:
        """OpenAI's API of responses, for scripts alone."""
        try:
            wanted = self._conduct(request.headers.get(BEHAVIOUR_HEADER)).behaviour
            asked = json.loads(await request.read())
            found = scripted.turn_of(wanted.scripts, scripted.items_of(asked))
            if found is None or asked.get("stream"):
                return refusal(400, "The stand-in answers responses by a script alone, and does not stream")
            await asyncio.sleep(wanted.latency_seconds)
            return web.json_response(scripted.response(asked, str(asked["model"]), *found))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return refusal(400, f"Not a request for a response: {type(error).__name__}: {str(error)[:200]}")

    def _conduct(self, header: str | None) -> Conduct:
        if header is not None:
            return Conduct(Behaviour.model_validate_json(header))
        return self._told or self._usual

    async def _models(self, request: web.Request) -> web.Response:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": FINGERPRINT} for name in MODELS]
        return web.json_response({"object": "list", "data": listed})

    async def _tell(self, request: web.Request) -> web.Response:
        try:
            self.tell(Behaviour.model_validate_json(await request.read()))
        except ValidationError as error:
            return refusal(400, str(error))
        return await self._show(request)

    async def _show(self, request: web.Request) -> web.Response:
        return web.json_response((self._told or self._usual).behaviour.model_dump())

    async def _forget(self, request: web.Request) -> web.Response:
        self.tell(None)
        return await self._show(request)

    async def _counts(self, request: web.Request) -> web.Response:
        return web.json_response(
            {"busiest": self.busiest, "answers": {str(status): n for status, n in self.requests.items()}}
        )

    async def _clear(self, request: web.Request) -> web.Response:
        self.requests.clear()
        self.busiest = self._now
        return await self._counts(request)

    async def _live(self, request: web.Request) -> web.Response:
        return web.json_response({"stand_in": LABEL})


@dataclass
class Running:
    """A server that listens. `url` ends in /v1, as OpenAI's clients expect."""

    url: str
    port: int
    model: LocalModel
    _runner: web.AppRunner

    async def close(self) -> None:
        await self._runner.cleanup()


async def start(
    host: str = "127.0.0.1", port: int = 0, *, key: str | None = None, behaviour: Behaviour | None = None
) -> Running:
    """Listen on the running loop; port 0 takes a free one. The caller closes it."""
    model = LocalModel(key, behaviour)
    runner = web.AppRunner(model.application(), access_log=None, shutdown_timeout=0.5)
    try:
        await runner.setup()
        await web.TCPSite(runner, host, port).start()
    except BaseException:
        await runner.cleanup()
        raise
    taken = int(runner.addresses[0][1])
    log.warning("%s, on http://%s:%s/v1", LABEL, host, taken)
    return Running(f"http://{host}:{taken}/v1", taken, model, runner)
