"""The stand-in for Opik (`rampgate.localopik`) as a child process."""

from __future__ import annotations

import http.client
import importlib.util
import sys
from pathlib import Path
from typing import ClassVar

from rampgate.services.ports import release_port, reserve_port
from rampgate.services.process import ChildProcess
from rampgate.services.service import Service
from rampgate.services.unavailable import ServiceUnavailable

_MODULE = "rampgate.localopik"


class LocalOpik(Service):
    """Keeps its database file over restarts. `url` is what the setting `opik` wants."""

    name: ClassVar[str] = "opik"

    def __init__(self) -> None:
        super().__init__()
        self.port = reserve_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    def _prepare(self, folder: Path) -> ChildProcess:
        if importlib.util.find_spec(_MODULE) is None:
            raise ServiceUnavailable(self.name, f"this installation has no {_MODULE}", "install rampgate whole")
        command = [sys.executable, "-m", _MODULE, "--port", str(self.port), "--database", str(folder / "opik.db")]
        return ChildProcess(self.name, command, folder)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1.0)
        try:
            connection.request("GET", "/is-alive/ping")
            return connection.getresponse().status == 200
        except http.client.HTTPException:
            return False
        finally:
            connection.close()

    def _release(self) -> None:
        release_port(self.port)
