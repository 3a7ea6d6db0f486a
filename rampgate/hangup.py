"""What SIGHUP means: an operator's "read your files again", unless it is the terminal that went away."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress

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
