"""The holding directory: drafts that wait for PC-6's review, and the log of what was decided (PF-9 FR-9, §5.7, R-5).

Nothing leaves it: no git, no merge, no file elsewhere. The log `ledger.jsonl` counts drafts by ISO week and vertical,
and remembers prompts by their hash, so that nothing is proposed twice; it holds no text.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path

from msgspec import Struct, to_builtins

from evalcore.optimisation.measuring import Outcome
from rampgate.console import Failure
from rampgate.files import locked, replace_file, writing
from rampgate.input_files import read

LEDGER = "ledger.jsonl"
PLACE = ".answers"
"""Where answers are kept, which hold texts of users: git ignores it."""
ANSWERS = "answers.db"
MARK = 12
HELD = (Outcome.DRAFT, Outcome.UNMEASURED)
"""Outcomes that a person sees."""


class Decided(Struct, frozen=True):
    """A line of the log: what became of one prompt of one agent."""

    candidate: str
    week: str
    vertical: str
    agent: str
    prompt_hash: str
    outcome: Outcome
    why: str


def week_of(day: date) -> str:
    """The ISO week, such as 2026-W48."""
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02}"


class Holding:
    """One vertical's drafts in a folder, which several verticals may share. `week` is this one."""

    def __init__(self, folder: Path, vertical: str, agent: str, week: str) -> None:
        self.folder, self._vertical, self._agent, self.week = folder, vertical, agent, week
        self._log = list[Decided]()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other run works in the folder meanwhile: two could exceed the week's cap together. Raises Failure, and
        BadFile for a log that can't be read."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            aside = self._inside(self.folder / PLACE)
            aside.mkdir(exist_ok=True)
            if not (ignore := aside / ".gitignore").exists():
                replace_file(ignore, "*\n")
            with locked(aside):
                self._log = self._read()
                yield

    def known(self, prompt_hash: str) -> Decided | None:
        """What became last of this agent's prompt; None where it is new."""
        return self._latest().get((self._vertical, self._agent, prompt_hash))

    def held(self) -> set[str]:
        """The candidates of this vertical and week that a person sees: by the log, and files that a run which was
        killed left without a line."""
        latest = self._latest().values()
        logged = {
            one.candidate
            for one in latest
            if one.vertical == self._vertical and one.week == self.week and one.outcome in HELD
        }
        return logged | (self._files() - {one.candidate for one in latest})

    def unfinished(self) -> bool:
        """Tells whether one of them waits to be measured, or for its line."""
        done = {one.candidate for one in self._latest().values() if one.outcome is not Outcome.UNMEASURED}
        return bool(self.held() - done)

    def _files(self) -> set[str]:
        start = self._name("")
        stems = (path.stem for path in self.folder.glob("*.yaml"))
        return {stem for stem in stems if stem.startswith(start) and len(stem) == len(start) + MARK}

    def candidate(self, prompt_hash: str) -> str:
        """The name of a prompt's draft, the same in later weeks."""
        known = self.known(prompt_hash)
        return known.candidate if known is not None else self._name(prompt_hash[:MARK])

    def decide(self, prompt_hash: str, outcome: Outcome, why: str, files: Mapping[str, str]) -> list[Path]:
        """Write the files of what a person sees, then the line. A file of a draft that is refused now is removed.
        Returns the files' places. Raises OSError."""
        candidate = self.candidate(prompt_hash)
        written = [self.write(name, text) for name, text in files.items()]
        if outcome not in HELD:
            for path in self.folder.glob(f"{candidate}.*"):
                path.unlink()
        known = self.known(prompt_hash)
        week = known.week if known is not None else self.week
        line = Decided(candidate, week, self._vertical, self._agent, prompt_hash, outcome, why)
        if line != known:
            self._log.append(line)
            self.write(LEDGER, "".join(f"{json.dumps(to_builtins(one), ensure_ascii=False)}\n" for one in self._log))
        return written

    def write(self, name: str, text: str) -> Path:
        """Write a file of the folder whole. Raises OSError; Failure for a name that a link leads elsewhere."""
        path = self._inside(self.folder / name)
        replace_file(path, text)
        return path

    def answers(self, run: str) -> Path:
        """The file for the answers of a run. Those of the vertical's other runs are removed: they hold texts of
        users. Raises OSError; Failure for a name that a link leads elsewhere."""
        folder = self._inside(self.folder / PLACE / self._vertical)
        for other in folder.iterdir() if folder.is_dir() else ():
            if other.name != run and other.is_dir() and not other.is_symlink():
                shutil.rmtree(other)
        self._inside(folder / run).mkdir(parents=True, exist_ok=True)
        return self._inside(folder / run / ANSWERS)

    def _inside(self, path: Path) -> Path:
        """The path, which is where it says. Raises Failure where a link leads elsewhere: nothing but the folder may
        change."""
        if path.resolve() != self.folder.resolve() / path.relative_to(self.folder):
            raise Failure(f"{path}: is a link that leads out of the holding directory; remove it")
        return path

    def _name(self, mark: str) -> str:
        return f"{self.week}-{self._vertical}-{mark}"

    def _latest(self) -> dict[tuple[str, str, str], Decided]:
        return {(one.vertical, one.agent, one.prompt_hash): one for one in self._log}

    def _read(self) -> list[Decided]:
        path = self._inside(self.folder / LEDGER)
        return [line for _, line in read(path, Decided)] if path.exists() else []
