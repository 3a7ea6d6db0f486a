"""The stand-in for Opik (`rampgate.localopik`) as a child process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

from rampgate.services.http_service import HttpService
from rampgate.services.process import ChildProcess


class LocalOpik(HttpService):
    """Keeps its database file over restarts. `url` is what the setting `opik` wants."""

    name: ClassVar[str] = "opik"
    probe: ClassVar[str] = "/is-alive/ping"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    def _prepare(self, folder: Path) -> ChildProcess:
        command = [sys.executable, "-m", "rampgate.localopik", "--port", str(self.port)]
        return ChildProcess(self.name, [*command, "--database", str(folder / "opik.db")], folder)
