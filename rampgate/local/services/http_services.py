"""Runs the stand-ins for Opik and for a judges' model as child processes.

Both are modules that take `--port` and answer a probe.
"""

from __future__ import annotations

import http.client
import sys
from pathlib import Path
from typing import ClassVar

from rampgate.local.services.process import ChildProcess
from rampgate.local.services.service import PortService


class HttpService(PortService):
    """A service that is ready when it answers `GET probe` with 200."""

    probe: ClassVar[str]

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1.0)
        try:
            connection.request("GET", self.probe)
            return connection.getresponse().status == 200
        except http.client.HTTPException:
            return False
        finally:
            connection.close()


class LocalModel(HttpService):
    """The stand-in for a judges' model. Keeps nothing over a restart. `url` is the value for the setting
    `model_url`."""

    name: ClassVar[str] = "model"
    probe: ClassVar[str] = "/livez"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def _prepare(self, folder: Path) -> ChildProcess:
        command = [sys.executable, "-m", "rampgate.local.model", "--port", str(self.port)]
        return ChildProcess(self.name, command, folder)


class LocalOpik(HttpService):
    """The stand-in for Opik. Keeps its database file over a restart. `url` is the value for the setting `opik`."""

    name: ClassVar[str] = "opik"
    probe: ClassVar[str] = "/is-alive/ping"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    def _prepare(self, folder: Path) -> ChildProcess:
        command = [sys.executable, "-m", "rampgate.local.opik", "--port", str(self.port)]
        return ChildProcess(self.name, [*command, "--database", str(folder / "opik.db")], folder)
