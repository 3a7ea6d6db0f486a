"""The stand-in for a judges' model (`rampgate.localmodel`) as a child process. It answers by rule, and says so."""

from __future__ import annotations

import http.client
import sys
from pathlib import Path
from typing import ClassVar

from rampgate.services.ports import release_port, reserve_port
from rampgate.services.process import ChildProcess
from rampgate.services.service import Service


class LocalModel(Service):
    """Remembers nothing over restarts. `url` is what the setting `model_url` wants."""

    name: ClassVar[str] = "model"

    def __init__(self) -> None:
        super().__init__()
        self.port = reserve_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def _prepare(self, folder: Path) -> ChildProcess:
        command = [sys.executable, "-m", "rampgate.localmodel", "--port", str(self.port)]
        return ChildProcess(self.name, command, folder)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1.0)
        try:
            connection.request("GET", "/livez")
            return connection.getresponse().status == 200
        except http.client.HTTPException:
            return False
        finally:
            connection.close()

    def _release(self) -> None:
        release_port(self.port)
