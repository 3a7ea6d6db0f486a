"""The base of all services: a folder, a start that waits until it answers, signals, an end that leaves nothing."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from rampgate.local.services.janitor import make_folder, remove_folder
from rampgate.local.services.process import ChildProcess


class Service(ABC):
    """A real server on a free port, started by `with` or start(), ended by close().

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
        """The process to run; called once, before the first start. Raises ServiceUnavailable with the remedy."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the service works now. May raise OSError for "not yet"; must return within a second or two."""

    def _release(self) -> None:  # noqa: B027 - optional on purpose
        """Gives back what `_prepare` reserved; also called when `_prepare` failed half way."""

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
        """Blocks until the service answers. Raises ServiceUnavailable, leaving nothing running."""
        began = time.monotonic()
        try:
            self.process.start()
            self.process.wait_ready(self._answers, self.ready_seconds)
        except BaseException:
            self.close()
            raise
        self.started_in = time.monotonic() - began

    def stop(self) -> None:
        """Ends the process in an orderly way; port and folder stay for the next start()."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def pause(self) -> None:
        """SIGSTOP: connections stay open, nothing is answered."""
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Kills what runs and removes the folder. May be called at any time, also twice."""
        if self._process is not None:
            self._process.kill()  # the data is not needed any more, so there is nothing to wait for
            self._process = None
        if self._folder is not None:
            remove_folder(self._folder)
            self._folder = None
        self._release()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
