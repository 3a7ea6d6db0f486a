"""`rampgate worker` as a process of its own, that can be killed and paused."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fork_server import Forked


def environment(settings: Mapping[str, Any]) -> dict[str, str]:
    """This process' environment with these settings of Rampgate's, and no others."""
    names = {k: v for k, v in os.environ.items() if not k.startswith("RAMPGATE_")}
    return names | {f"RAMPGATE_{k.upper()}": str(v) for k, v in settings.items()}


class WorkerProcess:
    """`rampgate worker` as a process of its own, its log in a file."""

    def __init__(self, settings: Mapping[str, Any], log: Path) -> None:
        self.log_file = log
        self._out = log.open("ab")
        self.process = Forked(["worker"], environment(settings), self._out, self._out)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._out.close()

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def terminate(self, seconds: float = 30.0) -> int:
        """SIGTERM; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds: float = 30.0) -> int:
        code = self.process.wait(seconds)
        self._out.close()
        return code

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def logged(self, text: str) -> bool:
        return text in self.log()
