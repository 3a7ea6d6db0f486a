"""Records the scenario with every SDK against the stand-ins: `python -m tests.sdk_recordings PYTHON`, whose environment
has what `requirements.txt` names. Writes `made/*.json`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from rampgate.local.model.behaviour import Behaviour
from rampgate.local.model.server import start

HERE = Path(__file__).parent
SCENARIO = json.loads((HERE / "scenario.json").read_text())
WAYS = (
    "openai-agents-chat", "openai-agents-responses", "langgraph", "opentelemetry-1.36", "opentelemetry", "opik",
)  # fmt: skip


def behaviour() -> Behaviour:
    """What the stand-in answers. An SDK that gives the second agent a conversation of its own asks it `billing`."""
    turns = SCENARIO["turns"]
    own = {"when": SCENARIO["billing"], "turns": turns[SCENARIO["first_of_billing"] :]}
    return Behaviour.model_validate({"scripts": [own, {"when": SCENARIO["question"], "turns": turns}]})


async def record(way: str, python: str, model: str, opik: str) -> dict[str, Any]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPIK_", "OPENAI_"))}
    process = await asyncio.create_subprocess_exec(
        python, str(HERE / "scenario_in_sdks.py"), way, model, opik, stdout=asyncio.subprocess.PIPE, env=kept
    )
    said, _ = await process.communicate()
    if process.returncode:
        raise SystemExit(f"{way}: exit code {process.returncode}")
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


class Opik:
    """Takes what Opik's SDK sends of traces and spans, and gives them back as Opik would."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, dict[str, Any]]] = {"traces": {}, "spans": {}}

    async def take(self, request: web.Request) -> web.Response:
        parts = request.path.split("/")
        kind = next((name for name in self.held if name in parts), None)
        body = orjson.loads(await request.read() or b"{}")
        if kind is not None and request.method in ("POST", "PATCH"):
            for one in body.get(kind, [body]):
                found = one.get("id") or parts[-1]
                known = self.held[kind].setdefault(found, {"id": found})
                known |= {name: value for name, value in one.items() if value is not None}
        return web.json_response({"result": True, "status": "ok"})

    def recorded(self) -> dict[str, Any]:
        (trace,) = self.held["traces"].values()
        return {"trace": trace, "spans": list(self.held["spans"].values())}


async def main(python: str, wanted: list[str]) -> None:
    model, opik = await start(behaviour=behaviour()), Opik()
    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{rest:.*}", opik.take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/api"
    try:
        for way in wanted or WAYS:
            found = await record(way, python, model.url, url)
            found |= opik.recorded() if way == "opik" else {}
            # Tracebacks in spans name files; a recording says nothing of the machine that made it.
            text = json.dumps(found, sort_keys=True).replace(f"{HERE.parents[1]}/", "")
            (HERE / "made" / f"{way}.json").write_text(f"{text}\n")
            print(f"recorded {way}")
    finally:
        await model.close()
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
