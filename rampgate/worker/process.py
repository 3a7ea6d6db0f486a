"""A worker with its HTTP side, as one process.

What SIGHUP means: an operator's "read your files again", unless it is the terminal that went away.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version

from evalcore import reloading
from rampgate.http.dead_letters import Letters
from rampgate.http.routes import Side
from rampgate.http.server import listen
from rampgate.queries import Answers
from rampgate.registry.serving import ServedRegistry
from rampgate.settings import Settings, revealed
from rampgate.wiring import make_parts
from rampgate.worker.gates import Gates
from rampgate.worker.health import WorkerHealth
from rampgate.worker.worker import Worker

TERMINAL = "/dev/tty"


def on_hangup(refresh: Callable[[], None], stop: Callable[[], None]) -> None:
    """For the running loop. A worker started by hand ends with its terminal, as it would without us; a service and one
    under nohup have none to lose."""
    loop = asyncio.get_running_loop()
    attached = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN and has_terminal()

    def hung_up() -> None:
        if attached and not has_terminal():
            stop()
        else:
            refresh()

    with suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGHUP, hung_up)


def has_terminal() -> bool:
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


async def serve_worker(settings: Settings) -> int:
    """Run a worker until it is told to stop; returns its exit code. HTTP is there before the topics are, since waiting
    for those is what a probe has to tell, and before the registry is, which may be broken: signals are joined anyway.
    Raises SettingsError for an HTTP address that can't be had."""
    parts = make_parts(settings)
    parts.metrics.build_info.labels(version("rampgate")).set(1)
    try:
        gates = Gates(parts)
        worker = Worker(parts, gates)
        quiet_collector()
        registry = ServedRegistry(settings.configs, parts.metrics, reloading)
        health = WorkerHealth(worker, settings.stalled_after_seconds, registry.check)
        token = revealed(settings.token)
        side = Side(
            parts.metrics, health.live, health.ready, token, Answers(parts), Letters(parts).list, registry, gates.listed
        )
        listening = await listen(settings, side)
        on_hangup(registry.ask, worker.stop)
        beside = [
            asyncio.create_task(health.run(), name="health"),
            asyncio.create_task(registry.run(settings.registry_ttl_seconds), name="registry"),
        ]
        try:
            return await worker.run()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await listening.close()
    finally:
        await parts.close()


def quiet_collector() -> None:
    """Leave what is loaded by now out of garbage collection, and collect by the clock (`Maintenance.pulse`) instead of
    by the number of objects: a batch makes tens of thousands that die with it, and looking through those that are in
    flight took a third of the worker's time."""
    gc.collect()
    gc.freeze()
    gc.disable()
