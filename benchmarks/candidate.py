"""Candidate and judges side by side: how near a gate before a merge comes to the slower of the two, with a candidate
that takes three seconds an answer and is asked eight at once (PC5 NFR-2). The model is the stand-in and the candidate a
small server, each in a process of its own.

`run` measures in processes of their own, one a round; this module is also what such a process runs, and the candidate.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from typing import Any

from benchmarks.judges import AT_ONCE, stand_in
from benchmarks.options import Options
from benchmarks.processes import ROOT, measured, serving
from rampgate.local.services.ports import release_port, reserve_port

ITEMS, SECONDS, ASKED_AT_ONCE = 64, 3.0, 8
LATENCY = 1.0
"""Seconds that the model takes, so that the judges need about as long as the candidate: the hardest case."""
TODAY = date(2026, 11, 21)


def run(options: Options) -> dict[str, Any]:
    """Medians of the rounds."""
    rounds = min(options.rounds, 3)
    with stand_in(LATENCY) as model, _candidate() as candidate:
        found = [measured("candidate", model, candidate) for _ in range(rounds)]
    middle = {name: median(one[name] for one in found) for name in found[0]}
    about = {"items": ITEMS, "seconds": SECONDS, "asked_at_once": ASKED_AT_ONCE, "latency": LATENCY}
    return {"rounds": rounds, "at_once": AT_ONCE, **about, "measured": middle}


@contextmanager
def _candidate() -> Iterator[str]:
    port = reserve_port()
    try:
        with serving("benchmarks.candidate", str(port), ready=lambda child: "ready" in child.log_file.read_text()):
            yield f"http://127.0.0.1:{port}/"
    finally:
        release_port(port)


class Slow(BaseHTTPRequestHandler):
    """Answers each question after SECONDS."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        time.sleep(SECONDS)
        content = json.dumps({"output": f"so: {asked['input']}", "tool_calls": []}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


async def measure(model: str, candidate: str) -> dict[str, float]:
    """Runs the gate once, as `gate run --candidate` does."""
    from evalcore.gates.evaluate import scorer_for
    from evalcore.gates.golden import GoldenSet, pending
    from evalcore.registry.disk import read_tree
    from evalcore.registry.registry import build
    from evalcore.scoring.model_caller import CallLimits
    from evalcore.validation import checked
    from rampgate.ci_gate.run import GateRequest
    from rampgate.ci_gate.run import run as run_gate
    from rampgate.settings import Settings
    from rampgate.suite.candidates.configured import at_address

    registry = build(checked(read_tree(ROOT / "configs"), TODAY)[0])
    categories = sorted(registry.category_files)
    items = [
        {"input": f"question {number}?", "expected_output": "so",
         "metadata": {"id": str(number), "category": categories[number % len(categories)], "expected_tools": []}}
        for number in range(ITEMS)
    ]  # fmt: skip

    async def dataset() -> GoldenSet:
        return GoldenSet(items, "benchmark")

    async with (
        scorer_for(url=model, limits=CallLimits(AT_ONCE)) as scorer,
        at_address(Settings(), candidate, {}, ASKED_AT_ONCE) as asked,
    ):
        began = time.perf_counter()
        done = await run_gate(GateRequest(registry, TODAY), dataset, partial(pending, candidate=asked), scorer)
        took = time.perf_counter() - began
    failed = [one for one in done.scored.judgements if one.failure]
    if done.answered != ITEMS or failed:
        raise RuntimeError(f"not all was answered: {done.answered} answers, {failed[:1]}")
    calls = done.document()["evidence"]["model_calls"]
    candidates, judges = ITEMS / ASKED_AT_ONCE * SECONDS, calls * LATENCY / AT_ONCE
    return {"calls": calls, "candidate": candidates, "judges": judges, "took": took}


if __name__ == "__main__":
    if len(sys.argv) == 2:
        server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Slow)
        print("ready", flush=True)
        server.serve_forever()
    else:
        import uvloop

        print(json.dumps(uvloop.run(measure(*sys.argv[1:]))))
