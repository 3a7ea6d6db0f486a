"""What every step of a round has at hand, what it leaves, and the files that steps hand on to one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalcore.registry.files import AGREEMENT
from evalcore.registry.judge import Judge
from evalcore.registry.registry import Registry
from rampgate.asking import asked_judges
from rampgate.calibration.folder import DRAWN, RATINGS, DrawnTurn, Folder, Rating, evaluation_folder
from rampgate.calibration.opik_turns import OpikTurns
from rampgate.calibration.queue import PeopleInOpik
from rampgate.command import Context
from rampgate.input_files import read
from rampgate.settings import Settings
from schemas.calibration_cycle import PeoplesQueue, State


@dataclass(frozen=True)
class Options:
    """The options of a round. `ticket`, `report`, `size`, `runs` and `acceptable` are fixed when a round begins; None
    stands for those that it has."""

    context: Context
    vertical: str
    round: str | None
    turns: Path | None
    sheets: tuple[Path, ...]
    empty_sheet: Path | None
    outputs: Path | None
    acceptable: Mapping[str, float]
    ticket: str | None
    report: str | None
    size: int | None
    runs: int | None
    write: bool
    since: str | None = None
    until: str | None = None
    queue: bool = False


@dataclass(frozen=True, kw_only=True)
class Given(Options):
    """What one run of the round has. `reported`: the hash of the difference that an earlier run showed, empty where
    none did."""

    folder: Folder
    reported: str = ""
    in_queue: dict[str, list[Rating]] = field(default_factory=dict)
    """What people said in a queue, once it was read."""

    @property
    def settings(self) -> Settings:
        return self.context.settings

    @property
    def registry(self) -> Registry:
        return self.context.registry

    @property
    def judges(self) -> dict[str, Judge]:
        """The judges as the vertical sees them."""
        return {judge.id: judge for judge in self.registry.all(self.vertical)}

    @property
    def opik(self) -> OpikTurns:
        """The vertical's turns in Opik."""
        return OpikTurns(self.settings, self.context.verticals[self.vertical], self.judges)

    @property
    def thresholds_file(self) -> Path:
        """Where the vertical says how far its annotators have to agree."""
        return evaluation_folder(self.settings.configs, self.vertical) / AGREEMENT

    def people(self) -> PeopleInOpik:
        """Those who score the drawn turns in Opik."""
        return PeopleInOpik(self.settings, self.context.verticals[self.vertical], self.judges, drawn_turns(self))

    def queued(self, queue: PeoplesQueue) -> list[Rating]:
        """What people said in the queue, read once a run."""
        if queue.id not in self.in_queue:
            self.in_queue[queue.id] = self.people().ratings(queue)
        return self.in_queue[queue.id]

    def hashes(self, *names: str) -> dict[str, str]:
        return self.folder.hashes(*names)


@dataclass(frozen=True)
class Outcome:
    """What a step left: files of the round's folder by name, and fields of its document."""

    state: State = State.DONE
    told: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    found: Mapping[str, Any] = field(default_factory=dict)


def drawn_turns(given: Given) -> dict[str, DrawnTurn]:
    """The lines of the draw by turn."""
    return {one.item_id: one for _, one in read(given.folder.path / DRAWN, DrawnTurn)}


def ratings_of(given: Given) -> list[Rating]:
    """What people said."""
    return [one for _, one in read(given.folder.path / RATINGS, Rating)]


def judges_to_ask(given: Given) -> list[Judge]:
    """The judges of the drawn turns that ask a model, in one order."""
    drawn = {judge for one in drawn_turns(given).values() for judge in one.judge_scores}
    return asked_judges([given.judges[name] for name in sorted(drawn)])
