"""The stand-in for a judges' model (`rampgate.localmodel`) as a child process. It answers by rule, and says so."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

from rampgate.services.http_service import HttpService
from rampgate.services.process import ChildProcess


class LocalModel(HttpService):
    """Remembers nothing over restarts. `url` is what the setting `model_url` wants."""

    name: ClassVar[str] = "model"
    probe: ClassVar[str] = "/livez"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def _prepare(self, folder: Path) -> ChildProcess:
        command = [sys.executable, "-m", "rampgate.localmodel", "--port", str(self.port)]
        return ChildProcess(self.name, command, folder)
