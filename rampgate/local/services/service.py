"""The base of all services: a folder, a start that waits until it answers, signals, an end that leaves nothing."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from rampgate.local.services.janitor import make_folder, remove_folder
from rampgate.local.services.ports import release_port, reserve_port
from rampgate.local.services.process import ChildProcess


class Closing(ABC):
    """Started by `with` or start(); ended by close(), also where the start fails."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Service(Closing):
    """A real server on a free port of this machine.

    Restarts keep port and folder; whether data survives is the service's own promise. Not for use from several threads
    at once.
    """

    name: ClassVar[str]
    ready_seconds: ClassVar[float] = 30.0

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._process: ChildProcess | None = None
        self.started_in: float = 0.0
        """Seconds the last start took until the service answered."""

    @abstractmethod
    def _prepare(self, folder: Path) -> ChildProcess:
        """The process to run. Called once, before the first start. Raises ServiceUnavailable with the remedy."""

    @abstractmethod
    def _answers(self) -> bool:
        """Tells whether the service works now. May raise OSError for "not yet"; must return within two seconds."""

    def _release(self) -> None:
        """Release what the service has reserved. Also called when `_prepare` failed."""

    @property
    def folder(self) -> Path:
        if self._folder is None:
            self._folder = make_folder(f"rampgate-{self.name}-")
        return self._folder

    @property
    def process(self) -> ChildProcess:
        if self._process is None:
            self._process = self._prepare(self.folder)
        return self._process

    @property
    def pids(self) -> list[int]:
        return [self._process.pid] if self._process is not None and self._process.pid is not None else []

    def start(self) -> None:
        """Start; blocks until the service answers. Raises ServiceUnavailable and leaves nothing running."""
        began = time.monotonic()
        try:
            self.process.start()
            self.process.wait_ready(self._answers, self.ready_seconds)
        except BaseException:
            self.close()
            raise
        self.started_in = time.monotonic() - began

    def stop(self) -> None:
        """End the process in an orderly way; keep port and folder for the next start()."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def pause(self) -> None:
        """Send SIGSTOP: connections stay open without an answer."""
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Kill the process and remove the folder. May be called at any time, also twice."""
        if self._process is not None:
            self._process.kill()  # the data is not needed any more, so there is nothing to wait for
            self._process = None
        if self._folder is not None:
            remove_folder(self._folder)
            self._folder = None
        self._release()


class PortService(Service):
    """A service on one reserved port."""

    def __init__(self) -> None:
        super().__init__()
        self.port = reserve_port()

    def _release(self) -> None:
        release_port(self.port)
