"""`rampgate dev` and `rampgate demo`: everything on this machine.

This module alone may import `rampgate.local`, which only serves a laptop or a test.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
import time
from types import FrameType
from typing import Annotated

import typer

from rampgate.command import Context, command
from rampgate.console import Failure, print_json

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@command(None, flags="json")
def demo(
    context: Context,
    seed: Annotated[int, typer.Option(help="The day's seed; the same seed makes the same day")] = 7,
    turns: Annotated[int, typer.Option(min=50, max=100_000, help="Turns of the day")] = 2_000,
) -> None:
    """Show a seeded day of traffic, with everything embedded. Needs nothing but Python, and less than a minute.

    Example: rampgate demo --seed 11
    """
    require_extra("demo")
    from rampgate.local.demo.run import Demo
    from rampgate.logs import configure_logs

    configure_logs("warning", "console")
    answer = Demo(seed=seed, turns=turns, quiet=context.as_json).run()
    if context.as_json:
        print_json(answer)


class Stopped(Exception):
    """A signal ends the stack."""


@command(
    None,
    flags="json",
    gone=dict.fromkeys(
        ("--kafka-port", "--redis-port", "--opik-port", "--http-port"), "each takes a free port; --json prints them"
    ),
)
def dev(
    context: Context,
    real: Annotated[
        bool, typer.Option("--real", help="Apache Kafka and DynamoDB Local, with a table and feed")
    ] = False,
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Only the services")] = False,
) -> None:
    """Run the whole stack on this machine: broker, Redis, stand-ins for Opik and a judges' model, a worker that writes.

    It uses a model of your own instead of the stand-in with RAMPGATE_MODEL_URL=http://127.0.0.1:PORT/v1. It prints the
    addresses once all is ready, runs until Ctrl-C or SIGTERM, and leaves nothing behind.

    Example: rampgate dev --json
    """
    require_extra("dev")
    from rich.console import Console

    from rampgate.local.dev import DevStack
    from rampgate.local.services.process import ServiceUnavailable

    began = time.monotonic()
    stop_on_signals()
    err = Console(stderr=True)
    stack = DevStack(real=real, worker=not no_worker)
    try:
        with stack:
            show(stack.addresses, time.monotonic() - began, as_json=context.as_json)
            while stack.ended is None:
                time.sleep(0.2)
            child = stack.ended
            raise Failure(f"the {child.name} ended by itself; its log ends with:\n{child.log_tail(30)}")
    except Stopped:
        err.print("[dim]stopped; nothing is left behind[/]")
    except ServiceUnavailable as error:
        raise Failure(str(error)) from error


def require_extra(command: str) -> None:
    """Raise Failure with the remedy where a package of the extra `local` is missing that the command can't replace."""
    missing = [name for name in ("confluent_kafka", "uuid6") if importlib.util.find_spec(name) is None]
    if missing:
        raise Failure(
            f"rampgate {command} runs its services on this machine and needs {' and '.join(missing)}; "
            "install the extra for it: pip install 'rampgate[local]'"
        )


def stop_on_signals() -> None:
    """End the stack on the first signal, also while it starts; further signals are ignored while it ends."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped

    for number in SIGNALS:
        signal.signal(number, stop)


def show(addresses: dict[str, str | None], seconds: float, *, as_json: bool) -> None:
    if as_json:
        import orjson

        sys.stdout.write(orjson.dumps(addresses).decode() + "\n")
        sys.stdout.flush()
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, title=f"Ready after {seconds:.1f} s", title_justify="left")
    for name, address in addresses.items():
        if address is not None:
            table.add_row(name, address)
    console = Console()
    console.print(table)
    lines = [f"export RAMPGATE_{name.upper()}={addresses[name]}" for name in ("kafka", "redis", "opik")]
    console.print("For other rampgate commands, in another terminal:", *lines, sep="\n  ", highlight=False)
    if addresses["http"]:
        console.print(f"Then: rampgate coverage, or open {addresses['http']}/ in a browser. Ctrl-C ends it.")
