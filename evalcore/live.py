"""The registry that serves: read once, kept in memory, swapped whole (PC5 NFR-1, FR-10, §5.7). An edge: it reads files
and the clock.

A version with an error in it is never served. Lookups read one attribute: they touch no file, and they go on with what
serves while a refresh is under way.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from evalcore import loading
from evalcore.corpus import Corpus
from evalcore.problems import Problem, Severity, ValidationResult
from evalcore.registry import Registry, build
from evalcore.tree import Tree
from evalcore.validation import checked
from evalcore.views import view
from schemas.judges import judge_id

TTL_SECONDS = 300.0
SETTLE_SECONDS = 0.05
_TRIES = 40


class BrokenRegistry(ValueError):
    """Nothing serves: the first version that was read has errors, all of which are in `result`."""

    def __init__(self, result: ValidationResult, corpus: Corpus | None) -> None:
        self.result, self._corpus = result, corpus
        shown = "\n".join(f"  {problem}" for problem in result.errors[:5])
        more = f"\n  and {len(result.errors) - 5} more" if len(result.errors) > 5 else ""
        super().__init__(f"the registry in {result.path} can't be served:\n{shown}{more}")

    def raise_threshold_error(self, name: str, vertical: str | None) -> None:
        """ThresholdTypeError, where that is what is wrong with this judge (PC5 §9.5)."""
        name = judge_id(name.partition(".")[0])
        if self._corpus is not None and name in self._corpus.rules:
            view(self._corpus, name, vertical)


@dataclass(frozen=True)
class Serving:
    tree: Tree
    today: date
    registry: Registry
    result: ValidationResult
    since: datetime


class LiveRegistry:
    """Of one folder. Any thread may call any method. `ttl` None: only `refresh` looks for a new version."""

    def __init__(
        self,
        root: Path,
        ttl: float | None = TTL_SECONDS,
        *,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], date] = loading.today,
        reading: Callable[[Path], Tree] = loading.read_tree,
        settle: float = SETTLE_SECONDS,
    ) -> None:
        self.root, self._ttl, self._clock, self._today = root, ttl, clock, today
        self._reading, self._settle = reading, settle
        self._serving: Serving | None = None
        self._due = float("inf")
        self._loading = threading.Lock()
        self._looking = threading.Lock()
        self.last: ValidationResult | None = None
        """What the latest look at the files found, also when that did not come to serve."""

    def current(self) -> Registry:
        """What serves; the first call reads the files. Raises BrokenRegistry while nothing serves."""
        serving = self._serving
        if serving is None:
            return self._first()
        if self._clock() >= self._due:
            self._look_aside()
        return serving.registry

    def loaded(self) -> Registry | None:
        """What serves, if something does; never reads."""
        return self._serving.registry if self._serving is not None else None

    def refresh(self) -> ValidationResult:
        """Read the files and serve them if they hold no error; else what served goes on, and a warning in the result
        says so. Unchanged files change nothing. Raises nothing for the files."""
        with self._loading:
            return self._load()[0]

    def _first(self) -> Registry:
        with self._loading:
            if self._serving is None:
                result, corpus = self._load()
                if self._serving is None:
                    raise BrokenRegistry(result, corpus)
            return self._serving.registry

    def _look_aside(self) -> None:
        """A refresh by time, in a thread of its own, one at a time: who noticed goes on at once."""
        if self._looking.acquire(blocking=False):
            threading.Thread(target=self._look, name="registry-refresh", daemon=True).start()

    def _look(self) -> None:
        try:
            self.refresh()
        finally:
            self._looking.release()

    def _load(self) -> tuple[ValidationResult, Corpus | None]:
        serving, today = self._serving, self._today()
        corpus = None
        try:
            tree = self._settled(serving)
            if serving is not None and (tree, today) == (serving.tree, serving.today):
                result = serving.result
            else:
                corpus, problems = checked(tree, today)
                result = ValidationResult.of(self.root, problems)
                if result.valid:
                    registry = build(corpus)
                    self._serving = Serving(tree, today, registry, result, datetime.now(UTC))
                elif serving is not None:
                    result = ValidationResult.of(self.root, [*problems, self._still(serving)])
        except OSError as error:
            result = self._unread(error, serving)
        finally:
            self._due = self._clock() + self._ttl if self._ttl is not None else float("inf")
        self.last = result
        return result, corpus

    def _settled(self, serving: Serving | None) -> Tree:
        """The files once two readings agree, so that a checkout under way is not taken for a version."""
        found = self._reading(self.root)
        if serving is None or found == serving.tree:
            return found
        for _ in range(_TRIES):
            time.sleep(self._settle)
            before, found = found, self._reading(self.root)
            if found == before:
                return found
        raise OSError("the files keep changing while they are read")

    def _still(self, serving: Serving) -> Problem:
        message = (
            f"nothing of this version is used: the registry of {serving.since:%Y-%m-%d %H:%M:%S} UTC "
            f"({serving.registry.config_hash}) keeps serving"
        )
        fix = "repair what stands above or put back the earlier files, then refresh"
        return Problem(str(self.root), 0, 0, "", "still-serving", message, "PC5 §5.7", fix, Severity.WARNING)

    def _unread(self, error: OSError, serving: Serving | None) -> ValidationResult:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        fix = "RAMPGATE_CONFIGS names the folder"
        found = [Problem(str(self.root), 0, 0, "", "unreadable", f"can't be read: {what}", "PC5 FR-9", fix)]
        return ValidationResult.of(self.root, [*found, self._still(serving)] if serving else found)


_live: LiveRegistry | None = None
_choosing = threading.Lock()


def use(root: Path | str, ttl: float | None = TTL_SECONDS) -> None:
    """Serve this folder from now on. Nothing is read until somebody asks."""
    global _live
    _live = LiveRegistry(Path(root).absolute(), ttl)


def serving() -> LiveRegistry:
    """The folder chosen by `use`; without it RAMPGATE_CONFIGS, else `configs`, as it was at the first call."""
    if _live is None:
        with _choosing:
            if _live is None:
                use(loading.default_root())
    return _live or serving()


def current() -> Registry:
    return (_live or serving()).current()


def loaded() -> Registry | None:
    return serving().loaded()


def refresh() -> ValidationResult:
    return serving().refresh()
