"""A stand-in for a cluster's API server, over HTTP: objects of one group in memory, with the faults of a real one.

It serves what `streams.cluster.kubernetes` asks for: get, list, watch, apply and delete. The real client, lightkube,
speaks to it. A fault holds for an object's name, or for a namespace's watch by `watch NAMESPACE`, until it is taken
away.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

from aiohttp import web

from evalcore.remediation.objects import Kinds, Object
from streams.cluster.port import Unread
from streams.cluster.twin import Twin

REFUSALS = {"forbidden": 403, "gone": 410, "throttled": 429, "broken": 500}
TOKEN = "made-up-token"


class KubeApi:
    """`objects` are those of the twin behind it. `requests`: each as `METHOD path`; `peers`: the client's connections,
    by port; `most_open`: how many objects were asked for at once."""

    def __init__(self, objects: Iterable[Object] = (), kinds: Kinds | None = None) -> None:
        kinds = kinds or Kinds()
        self.twin = Twin(objects)
        self.faults: dict[str, str] = {}
        self.requests: list[str] = []
        self.peers: Counter[int] = Counter()
        self.tokens: set[str] = set()
        self.delay = 0.0
        self.operator: Callable[[Object], Iterable[Object]] = lambda applied: ()
        """What the operator makes of a Proposal that is applied: its children, and itself with a status."""
        self.open = self.most_open = 0
        self.url = ""
        self._plurals = {
            kind.lower() + "s": kind
            for kind in (kinds.proposal, kinds.analysis, kinds.execution, kinds.verification, kinds.escalation)
        }
        self._prefix = f"/apis/{kinds.group}/{kinds.version}/namespaces/{{namespace}}/{{plural}}"
        self._loop: asyncio.AbstractEventLoop | None = None

    def apply(self, manifest: Object) -> Any:
        """Change an object, as the operator does; from any thread."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(self.twin.apply(manifest), self._loop).result(5)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object; from any thread."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self.twin.delete(kind, namespace, name), self._loop).result(5)

    @contextmanager
    def serving(self) -> Iterator[KubeApi]:
        """Serve on a free port, in a thread with a loop of its own."""
        self._loop = loop = asyncio.new_event_loop()
        thread = Thread(target=loop.run_forever, daemon=True)
        thread.start()
        runner = asyncio.run_coroutine_threadsafe(self._start(), loop).result(10)
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(_ended(runner), loop).result(10)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            loop.close()

    async def _start(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_get(self._prefix, self._watch)
        app.router.add_route("*", self._prefix + "/{name}", self._object)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    def _noted(self, request: web.Request) -> None:
        self.requests.append(f"{request.method} {request.path_qs}")
        assert request.transport is not None
        self.peers[request.transport.get_extra_info("peername")[1]] += 1
        self.tokens.add(request.headers.get("Authorization", ""))

    async def _object(self, request: web.Request) -> web.StreamResponse:
        self._noted(request)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            await asyncio.sleep(self.delay)
            return await self._answered(request)
        finally:
            self.open -= 1

    async def _answered(self, request: web.Request) -> web.StreamResponse:
        place = (
            self._plurals[request.match_info["plural"]],
            request.match_info["namespace"],
            request.match_info["name"],
        )
        if (fault := self.faults.get(place[2])) is not None:
            return await self._failed(request, fault)
        if request.method == "PATCH":
            applied = await self.twin.apply(json.loads(await request.text()))
            assert not isinstance(applied, Unread)
            for one in self.operator(applied):
                await self.twin.apply(one)
            return web.json_response(applied, status=201)
        found = await self.twin.get(*place)
        if isinstance(found, Unread):
            return _status(404)
        if request.method == "DELETE":
            await self.twin.delete(*place)
            return web.json_response({"kind": "Status", "status": "Success"})
        return web.json_response(found)

    async def _failed(self, request: web.Request, fault: str) -> web.StreamResponse:
        if fault in REFUSALS:
            return _status(REFUSALS[fault])
        if fault == "slow":
            await asyncio.sleep(60)
        if fault == "page":
            return web.Response(status=502, text="<html>bad gateway</html>", content_type="text/html")
        if fault == "truncated":
            return web.Response(text='{"kind": "AnalysisResult", "status": {"diag', content_type="application/json")
        if fault == "list":
            return web.json_response(["no", "object"])
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        if fault == "dies":
            response.content_length = 10_000
            await response.prepare(request)
            await response.write(b'{"kind": "AnalysisResult"')
            assert request.transport is not None
            request.transport.abort()
            return response
        assert fault == "huge", fault
        await response.prepare(request)
        with suppress(ConnectionError):
            await response.write(b'{"kind": "AnalysisResult", "status": {"diagnosis": "')
            for _ in range(100):
                await response.write(b"x" * 100_000)
            await response.write(b'"}}')
        return response

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        self._noted(request)
        kind, namespace = self._plurals[request.match_info["plural"]], request.match_info["namespace"]
        if "watch" not in request.query:
            items = [one for place, one in self.twin.objects.items() if place[:2] == (kind, namespace)]
            wanted = request.query.get("labelSelector")
            if wanted:
                label, _, value = wanted.partition("=")
                items = [one for one in items if (one["metadata"].get("labels") or {}).get(label) == value]
            return web.json_response({"kind": f"{kind}List", "metadata": {"resourceVersion": "1"}, "items": items})
        fault = self.faults.get(f"watch {namespace}")
        if fault in REFUSALS and fault != "gone":
            return _status(REFUSALS[fault])
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if fault == "gone":
            gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
            await response.write(json.dumps(gone).encode() + b"\n")
            return response
        if fault == "ends":
            return response
        with suppress(ConnectionError):
            async for change in self.twin.watch(kind, namespace):
                assert not isinstance(change, Unread)
                line = {"type": change[0], "object": {**change[1], "metadata": _versioned(change[1])}}
                await response.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        return response


async def _ended(runner: web.AppRunner) -> None:
    await runner.cleanup()
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def replayed(recorded: Iterable[Sequence[Object]]) -> Callable[[Object], Iterable[Object]]:
    """What an operator makes of a Proposal whose request one of the recorded workflows has: that workflow, under the
    Proposal's own name and in its namespace."""
    by_request = {of[0]["spec"]["request"].strip(): of for of in recorded}

    def operator(applied: Object) -> Iterator[Object]:
        first, *children = by_request[applied["spec"]["request"].strip()]
        name, namespace = applied["metadata"]["name"], applied["metadata"]["namespace"]
        for one in (*children, first):
            renamed = json.loads(json.dumps(one).replace(first["metadata"]["name"], name))
            owner = {"ownerReferences": [{"uid": applied["metadata"]["uid"]}]} if one is not first else {}
            yield {**renamed, "metadata": {"name": renamed["metadata"]["name"], "namespace": namespace, **owner}}

    return operator


def _versioned(one: Object) -> dict[str, Any]:
    return {"resourceVersion": "1", **one["metadata"]}


def _status(code: int) -> web.Response:
    body = {"kind": "Status", "status": "Failure", "code": code, "message": "a text that may name a secret"}
    return web.json_response(body, status=code, headers={"Retry-After": "1"} if code == 429 else {})
