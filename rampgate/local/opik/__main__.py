"""Serves the local Opik as a process: prints one JSON line with its URL when ready, and runs until a signal ends it."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal

from rampgate.local.opik.account import LABEL, VERSION
from rampgate.local.opik.server import start


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rampgate.local.opik", description=LABEL)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument("--database", default=":memory:", metavar="FILE|:memory:")
    parser.add_argument("--api-key", help="turns authentication on; the workspace is `default`")
    parser.add_argument("--faults", action="store_true", help="serve /_faults, /_requests and /_writes, for tests")
    return parser.parse_args()


async def _serve(arguments: argparse.Namespace) -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    running = await start(
        arguments.host, arguments.port, arguments.database, api_key=arguments.api_key, faults=arguments.faults
    )
    print(json.dumps({"url": running.url, "version": VERSION, "stand_in": LABEL}), flush=True)
    await ended.wait()
    await running.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    asyncio.run(_serve(_arguments()))
