"""Runs a worker with its HTTP side as one process; SIGHUP has it read the registry's files again."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version

from evalcore import reloading
from rampgate.console import Failure
from rampgate.http.routes import Side
from rampgate.http.server import listen
from rampgate.queries import Queries
from rampgate.registry.serving import ServedRegistry
from rampgate.settings import Settings, revealed
from rampgate.wiring import make_parts
from rampgate.worker.gates import Gates
from rampgate.worker.health import WorkerHealth
from rampgate.worker.worker import Worker
from streams.kafka.inflation import unusable_codecs

TERMINAL = "/dev/tty"


def on_hangup(refresh: Callable[[], None], stop: Callable[[], None]) -> None:
    """On SIGHUP refresh, unless the terminal has gone away: then stop.

    A worker started by hand ends with its terminal, as any program does; a service and a worker under nohup have none.
    """
    loop = asyncio.get_running_loop()
    attached = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN and has_terminal()

    def on_signal() -> None:
        if attached and not has_terminal():
            stop()
        else:
            refresh()

    with suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGHUP, on_signal)


def has_terminal() -> bool:
    try:
        os.close(os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


async def serve_worker(settings: Settings) -> int:
    """Run a worker until it is told to stop; return its exit code.

    HTTP listens before the topics exist, because a probe has to say that the worker waits for them, and before the
    registry is read, which may be broken: signals are joined anyway. Raises SettingsError for an HTTP address
    that can't be had, and for verticals that need a seal key, Failure for a codec of Kafka's that does not work.
    """
    check_codecs()
    parts = make_parts(settings, registry=False)
    parts.metrics.build_info.labels(version("rampgate")).set(1)
    try:
        gates = Gates(parts)
        worker = Worker(parts, gates)
        quiet_collector()
        registry = ServedRegistry(settings.configs, parts.metrics, reloading, joined=parts.verticals)
        health = WorkerHealth(worker, settings.stalled_after_seconds, registry.check)
        token = revealed(settings.token)
        side = Side(parts.metrics, health.live, health.ready, token, Queries(parts), registry, gates.listed)
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


def check_codecs() -> None:
    """Raise Failure where a codec of Kafka's does not work. Any producer may compress with any of them, and what can't
    be inflated becomes a dead letter."""
    broken = unusable_codecs()
    if broken:
        raise Failure(
            f"Kafka's {' and '.join(broken)} can't be inflated here ({'; '.join(dict.fromkeys(broken.values()))}), so "
            "records compressed with them could not be read. Install Rampgate with all it depends on: "
            "pip install --force-reinstall 'aiokafka[lz4,snappy,zstd]'"
        )


def quiet_collector() -> None:
    """Leave what is loaded by now out of garbage collection, and collect by the clock instead of by the number of
    objects: a batch makes tens of thousands that die with it, and traversing those in flight took a third of the
    worker's time. `Maintenance.pulse` collects."""
    gc.collect()
    gc.freeze()
    gc.disable()
