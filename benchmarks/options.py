"""How much is run. `quick` is for finding out whether everything works; its figures mean little."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@dataclass(frozen=True)
class Options:
    rounds: int = 5
    events: int = 300_000
    flat_events: int = 2_000_000
    paced_seconds: float = 20.0
    restarts: int = 3
    memory_turns: int = 200_000
    live_turns: int = 3_000
    verdicts: int = 200
    versions: int = 12
    gates: int = 10
    letters: str = "abcde"

    @classmethod
    def quick(cls) -> Options:
        return cls(
            rounds=1,
            events=60_000,
            flat_events=40_000,
            paced_seconds=5.0,
            restarts=1,
            memory_turns=50_000,
            live_turns=300,
            verdicts=20,
            gates=3,
        )


STDERR = Console(stderr=True)


def progress() -> Progress:
    """On stderr; silent where that is no terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=STDERR, disable=not STDERR.is_terminal)


def say(text: str) -> None:
    STDERR.print(text, highlight=False, markup=False)
