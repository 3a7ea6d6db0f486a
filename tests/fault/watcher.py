"""What must hold at any moment of a run: no offset is committed before its record is finished."""

from __future__ import annotations

import threading

from tests.fault.held import Held


class Watcher(threading.Thread):
    """Samples, ten times a second, that no committed offset is above what the state holds as finished (L4)."""

    def __init__(self, rig: Held) -> None:
        super().__init__(daemon=True, name="watcher")
        self._rig = rig
        self._ended = threading.Event()
        self.samples = 0
        self.violations: list[str] = []

    def run(self) -> None:
        while not self._ended.wait(0.1):
            try:
                committed = self._rig.committed()  # before the state is read: the state only moves on
                marks = self._rig.watermarks()
            except Exception:  # noqa: S112 - a part that is down is sampled again
                continue
            self.samples += 1
            for place, offset in committed.items():
                if offset > marks.get(place, 0):
                    self.violations.append(f"{place}: committed {offset}, the state has {marks.get(place)}")

    def end(self) -> None:
        self._ended.set()
        self.join(10)
