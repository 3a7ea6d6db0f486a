"""Reserves free ports among all processes that use this module, also while a service is stopped."""

from __future__ import annotations

import random
import socket
import threading

from rampgate.local.services.process import ServiceUnavailable

# Below the ports the kernel gives to outgoing connections (Linux 32768, macOS 49152), so that no client can be handed a
# port whose service is stopped for a moment.
_RANGE = range(15_000, 32_000)
_TRIES = 200
HOST = "127.0.0.1"

_reserved: dict[int, socket.socket] = {}
_lock = threading.Lock()
_random = random.SystemRandom()


def reserve_port() -> int:
    """Reserve a free TCP port until `release_port` or the end of this process.

    The reservation is a UDP socket on the same port: other processes see it, and it ends with its owner.
    """
    for _ in range(_TRIES):
        port = _random.choice(_RANGE)
        mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            mark.bind((HOST, port))
            for address in (HOST, ""):  # some services listen on every address
                with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind((address, port))
        except OSError:
            mark.close()
            continue
        with _lock:
            _reserved[port] = mark
        return port
    raise ServiceUnavailable("a free port", f"{_TRIES} ports tried, all taken", "close servers that aren't needed")


def release_port(port: int) -> None:
    with _lock:
        mark = _reserved.pop(port, None)
    if mark is not None:
        mark.close()


def accepts(port: int) -> bool:
    """Tells whether anything accepts TCP connections on the port."""
    try:
        with socket.create_connection((HOST, port), timeout=1.0):
            return True
    except OSError:
        return False
