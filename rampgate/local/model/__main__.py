"""Serves the local model as a process: prints one JSON line with its URL when ready, and runs until a signal ends
it."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from typing import get_args

import uvloop

from rampgate.local.model.behaviour import Behaviour
from rampgate.local.model.gullible import Gullible, Obeys
from rampgate.local.model.server import start
from rampgate.local.model.wire import LABEL


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rampgate.local.model", description=LABEL)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS", help="before each answer")
    parser.add_argument("--key-env", metavar="NAME", help="the environment variable with the key to ask for")
    parser.add_argument("--gullible", choices=get_args(Obeys), help="obey such texts in what is judged")
    parser.add_argument("--gullible-within", choices=["tool_result"], default="", help="only there")
    parser.add_argument("--gullible-rubric", default="", metavar="TEXT", help="only in prompts that hold this text")
    return parser.parse_args()


async def _serve(arguments: argparse.Namespace) -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    key = os.environ[arguments.key_env] if arguments.key_env else None
    believes = arguments.gullible and Gullible(
        obeys=arguments.gullible, rubric=arguments.gullible_rubric, within=arguments.gullible_within
    )
    behaviour = Behaviour(latency_seconds=arguments.latency, gullible=believes or None)
    try:
        running = await start(arguments.host, arguments.port, key=key, behaviour=behaviour)
    except OSError as error:
        sys.exit(f"--port {arguments.port}: {error.strerror}; give another one, or 0 for a free one")
    print(json.dumps({"url": running.url, "stand_in": LABEL}), flush=True)
    await ended.wait()
    await running.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    uvloop.run(_serve(_arguments()))
