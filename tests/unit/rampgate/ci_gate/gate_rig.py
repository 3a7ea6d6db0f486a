"""A pull request's gate on one machine: a small registry, its dataset, a candidate that listens, a stand-in."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import UUID, uuid5

from rampgate.local.model.behaviour import Behaviour
from rampgate.local.model.server import Running, start
from tests.unit.evalcore.registry.registry_disk import built, written

ITEMS = 20
CATEGORIES = ("general_qa", "shop_returns")
MANIFEST = f"{{dataset: {{name: golden, version: 7, items: {ITEMS}}}}}"
TRACES = 30
GATES = "gates: {minimum_sample: {pre_ramp: 20, pre_full: 25}, coverage_floor: 0.2}"
FEW = f"{{{MANIFEST[1:-1]}, {GATES}}}"
SPACE = UUID(int=0)


def item(number: int, **metadata: Any) -> dict[str, Any]:
    category = CATEGORIES[number % 2]
    return {
        "input": f"how do I do {number}?",
        "expected_output": "WRITTEN BY HAND #quality:1",
        "metadata": {"id": f"i{number}", "category": category, **metadata},
    }


def answer(number: int, quality: object = 1, **more: Any) -> dict[str, Any]:
    return {"id": f"i{number}", "output": f"so {number} #quality:{quality}", **more}


def trace(number: int, quality: object = 1, **metadata: Any) -> dict[str, Any]:
    category = ("general_qa", "shop_returns")[number % 2]
    return {
        "event_id": f"e{number}",
        "trace_id": str(uuid5(SPACE, str(number))),
        "input": {"messages": [{"content": f"how do I do {number}?"}]},
        "output": {"messages": [{"content": f"so {number} #quality:{quality}"}]},
        "metadata": {"agent_id": "a", "agent_version": "v", "category": category, **metadata},
    }


def jsonl(path: Path, *lines: Mapping[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def environment(root: Path, model: str) -> dict[str, str]:
    """Of commands that use this registry and this model, and no settings of the machine's."""
    nowhere = root.parent / "none.toml"
    return {"RAMPGATE_CONFIGS": str(root), "RAMPGATE_MODEL_URL": model, "RAMPGATE_SETTINGS": str(nowhere)}


class Rig:
    """`folder` has the registry, `dataset` its items, `outputs` good answers and `traces` good traces of an agent's
    version, half of them general_qa's, half shop_returns'; each can be written again."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder, self.model = folder, model
        self.root = self.registry({})
        self.dataset = jsonl(folder / "items.jsonl", *(item(n) for n in range(ITEMS)))
        self.outputs = jsonl(folder / "outputs.jsonl", *(answer(n) for n in range(ITEMS)))
        self.traces = folder / "traces.jsonl"
        self.written()

    def registry(self, changes: Mapping[str, str | None]) -> Path:
        return written(self.folder, {"evaluation_manifest.yaml": FEW, **changes})

    def answers(self, quality: Callable[[int], object]) -> Path:
        return jsonl(self.outputs, *(answer(n, quality(n)) for n in range(ITEMS)))

    def written(self, quality: object = 1, count: int = TRACES, **changes: Any) -> None:
        jsonl(self.traces, *({**trace(number, quality), **changes} for number in range(count)))

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.root, self.model)


class Closing(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=Closing)


@contextmanager
def beside(starting: Coroutine[Any, Any, C]) -> Iterator[C]:
    """A stand-in on a loop of its own, so that a command may have the test's thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    running = asyncio.run_coroutine_threadsafe(starting, loop).result(60)
    try:
        yield running
    finally:
        asyncio.run_coroutine_threadsafe(running.close(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


def local_model(behaviour: Behaviour | None = None) -> AbstractContextManager[Running]:
    return beside(start(behaviour=behaviour))


class FakeCandidate:
    """`says`: (request body, how often this input came) -> (status, body). `seen`: bodies, keys and paths, in order."""

    def __init__(self, says: Callable[[dict[str, Any], int], tuple[int, Any]]) -> None:
        self.says, self.seen, self.keys = says, list[dict[str, Any]](), list[str | None]()
        self.paths: list[str] = []
        self.url = ""


@contextmanager
def candidate(says: Callable[[dict[str, Any], int], tuple[int, Any]] | None = None) -> Iterator[FakeCandidate]:
    fake = FakeCandidate(says or (lambda body, _: (200, {"output": f"so: {body['input']} #quality:1"})))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            fake.seen.append(body)
            fake.keys.append(self.headers.get("authorization"))
            fake.paths.append(self.path)
            status, said = fake.says(body, [one["input"] for one in fake.seen].count(body["input"]))
            content = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # else those who call at once are turned away

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    fake.url = f"http://127.0.0.1:{server.server_port}/answer"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()


def standing_record(judge: str, verdict: str, **more: Any) -> dict[str, Any]:
    """What a check found of a judge of the small registry, as a line of a file for `--standing`."""
    version = built().judge(judge).version
    return {
        "event_id": f"{judge}-{verdict}", "judge_id": judge, "judge_version": version, "model": "gpt-5-mini",
        "reason": "canaries", "verdict": verdict, "message": "moved", "at": "2026-11-20T04:00:00Z", **more,
    }  # fmt: skip
