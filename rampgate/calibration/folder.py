"""The folder of a calibration round: its document, its files, its lock; every file is replaced whole.

A process that is killed leaves at most a file that no reader takes; the next run of the round takes it away.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from evalcore.registry.files import VERTICALS
from evalcore.registry.judge import digest
from rampgate.checks.score_files import Weight
from rampgate.console import Failure, plain
from rampgate.files import locked, replace_file, writing
from rampgate.input_files import ScoreValue, document
from schemas.calibration_cycle import Cycle, Step

DOCUMENT = "cycle.json"
SECONDS = ".seconds.json"
"""What the steps of an unfinished round took; taken away when the round is done, which tells the sum."""
DRAWN, RATINGS, PAIRS, ON_SCALE, ANSWERS, DIFF = (
    "draw.jsonl", "ratings.jsonl", "pairs.jsonl", "pairs-on-scale.jsonl", "answers.jsonl", "limits.diff",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_LEFT = re.compile(r"\.(?P<of>.+)\.[a-z0-9_]{8}")


class DrawnTurn(Struct, gc=False):
    """A line of `draw.jsonl`: a turn that people and judges score. `item_hash` is that of what they read."""

    item_id: str
    trace_id: str
    category: str
    weight: Weight
    disagreeing: bool
    item_hash: str
    judge_scores: dict[str, float]


class Rating(Struct, frozen=True, gc=False, rename={"item": "item_id", "judge": "judge_id"}):
    """A line of `ratings.jsonl`: what one annotator said of one turn, on the scale of one judge."""

    item: str
    judge: str
    annotator: str
    score: float


class RoundAnswer(Struct, gc=False):
    """A line of `answers.jsonl`: what a judge said of a turn in one of the runs."""

    run: int
    judge_id: str
    item_id: str
    score: ScoreValue
    item_hash: str


class RoundPair(Struct, gc=False):
    """A line of `pairs.jsonl`: a judge's score of a turn beside the mean of people's."""

    judge_id: str
    judge_version: str
    item_id: str
    judge_score: float
    human_score: float
    category: str
    weight: Weight


def line(one: Struct | Mapping[str, Any]) -> str:
    """A line of a file of the round."""
    return f"{json.dumps(msgspec.to_builtins(one), ensure_ascii=False)}\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Folder:
    """One round's folder."""

    path: Path

    def document(self) -> Cycle | None:
        """The round as far as it is; None before it began. Raises Failure: where a step found something else, too."""
        file = self.path / DOCUMENT
        if not file.exists():
            return None
        known, _ = document(file, Cycle, "take the file from the history")
        for step, done in known.steps.items():
            if changed := [name for name, was in done.results.items() if result(known, name) != was]:
                raise Failure(f"{file}: {changed[0]}: is not what {step} found; take the file from the history")
        return known

    def save(self, document: Cycle) -> None:
        self.write(DOCUMENT, json.dumps(document.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n")

    def forget_unless_drawn(self) -> None:
        """Take the document away where no step is done: nothing of that round is fixed."""
        known = self.document()
        if known is not None and not known.steps:
            (self.path / DOCUMENT).unlink()

    def write(self, name: str, text: str) -> None:
        write_whole(self.path / name, text)

    def hashes(self, *names: str) -> dict[str, str]:
        """The hashes of the folder's files; empty of one that is not there."""
        files = {name: self.path / name for name in names}
        return {name: sha256(file.read_bytes()) if file.is_file() else "" for name, file in files.items()}

    def seconds(self) -> dict[str, float]:
        try:
            found = json.loads((self.path / SECONDS).read_bytes())
        except (OSError, ValueError):
            return {}
        return {str(name): float(took) for name, took in found.items()}

    def took(self, step: Step, seconds: float) -> None:
        known = self.seconds()
        self.write(SECONDS, json.dumps({**known, step: known.get(step, 0.0) + seconds}))

    def forget_seconds(self) -> None:
        (self.path / SECONDS).unlink(missing_ok=True)


def result(cycle: Cycle, name: str) -> str:
    """The hash of a field of the document."""
    return digest(cycle.model_dump(mode="json", include={name}))


def write_whole(path: Path, text: str) -> None:
    """Write a file whole, and the folder it is in. Raises Failure."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)


def folder_of(configs: Path, vertical: str, name: str) -> Folder:
    """The folder of a round. Raises Failure for a name that is none."""
    if not _NAME.fullmatch(name):
        raise Failure(f"--round: {plain(name, 80)!r} is no name: letters, digits, dot, dash and underscore, 64 at most")
    return Folder(evaluation_folder(configs, vertical) / "rounds" / name)


def evaluation_folder(configs: Path, vertical: str) -> Path:
    """Where a vertical's reference set, thresholds, baseline and rounds are."""
    return Path(os.path.normpath(configs / VERTICALS / vertical / "eval"))


@contextmanager
def alone(folder: Folder, beside: Mapping[Path, re.Pattern[str]]) -> Iterator[None]:
    """Holds the vertical's rounds and reference set for this process, and takes away what a killed one left of the
    round's files, and of those of that name `beside`. Raises Failure where another process has them."""
    with ExitStack() as stack:
        with writing(folder.path):
            folder.path.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder.path.parent.parent))
        for place, names in {folder.path: re.compile(".*"), **beside}.items():
            for file in sorted(place.iterdir()) if place.is_dir() else ():
                left = _LEFT.fullmatch(file.name)
                if left is not None and names.fullmatch(left["of"]):
                    file.unlink(missing_ok=True)
        yield
