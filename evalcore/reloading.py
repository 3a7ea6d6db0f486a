"""Serves the registry from memory, and replaces it as a whole when its files change (PC5 NFR-1, FR-10, §5.7). An edge:
it reads files and the clock.

A version with an error is never served; findings then say what keeps serving. A lookup reads one attribute and touches
no file, and it uses the served version while a refresh runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from evalcore.registry import disk
from evalcore.registry.files import RegistryFiles, Tree
from evalcore.registry.judge import view
from evalcore.registry.registry import Registry, build
from evalcore.registry.thresholds import ThresholdTypeError
from evalcore.validation import checked
from evalcore.yaml.findings import Finding, Severity, ValidationResult
from evalcore.yaml.suggestions import Unknown
from schemas.judges import judge_id

__all__ = ["BrokenRegistry", "ReloadingRegistry", "current", "loaded", "refresh", "serving", "use"]

TTL_SECONDS = 300.0
SETTLE_SECONDS = 0.05
_TRIES = 40
_SHOWN = 5
"""Errors that an exception quotes."""


class BrokenRegistry(ValueError):
    """No registry serves: the first version that was read has errors, all of which are in `result`."""

    def __init__(self, result: ValidationResult, files: RegistryFiles | None) -> None:
        self.result, self._files = result, files
        shown = "\n".join(f"  {finding}" for finding in result.errors[:_SHOWN])
        more = f"\n  and {len(result.errors) - _SHOWN} more" if len(result.errors) > _SHOWN else ""
        super().__init__(f"the registry in {result.path} can't be served:\n{shown}{more}")

    def raise_threshold_error(self, name: str, vertical: str | None) -> None:
        """Raises ThresholdTypeError where that is what is wrong with this judge (PC5 §9.5)."""
        name = judge_id(name.partition(".")[0])
        if self._files is not None and name in self._files.rules:
            view(self._files, name, vertical)


def still_serving(root: Path, since: datetime, config_hash: str) -> Finding:
    """Returns the warning beside the errors of a new version that says what keeps serving."""
    message = (
        f"nothing of this version is used: the registry of {since:%Y-%m-%d %H:%M:%S} UTC ({config_hash}) keeps serving"
    )
    return _warning(root, message, "repair what is listed above or put back the earlier files, then refresh")


def still_serving_stricter(root: Path, config_hash: str) -> Finding:
    """Returns the warning beside errors that a new day brought to the serving files: an allowed exception has ended."""
    message = f"these files were valid and go on serving ({config_hash}); what was allowed until now no longer holds"
    return _warning(
        root, message, "repair what is listed above, then refresh; a process that starts takes no such version"
    )


def unreadable(root: Path, error: OSError) -> Finding:
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    fix = "RAMPGATE_CONFIGS names the folder"
    return Finding(str(root), 0, 0, "", "unreadable", f"can't be read: {what}", "PC5 FR-9", fix)


def unbuildable(root: Path, error: Exception) -> Finding:
    """Returns the finding for files without an error whose judges, categories and thresholds still don't fit
    together."""
    fix = "repair what is named here"
    return Finding(str(root), 0, 0, "", "unbuildable", f"can't be put together: {error}", "PC5 FR-9", fix)


def _warning(root: Path, message: str, fix: str) -> Finding:
    return Finding(str(root), 0, 0, "", "still-serving", message, "PC5 §5.7", fix, Severity.WARNING)


@dataclass(frozen=True)
class Look:
    """The files as read on a day, with their findings."""

    tree: Tree
    today: date
    files: RegistryFiles
    result: ValidationResult


@dataclass(frozen=True)
class Serving(Look):
    registry: Registry
    since: datetime


class ReloadingRegistry:
    """Serves one folder. Any thread may call any method. `ttl` None: only `refresh` looks for a new version."""

    def __init__(
        self,
        root: Path,
        ttl: float | None = TTL_SECONDS,
        *,
        clock: Callable[[], float] = time.monotonic,
        today: Callable[[], date] = disk.today,
        reading: Callable[[Path], Tree] = disk.read_tree,
        settle: float = SETTLE_SECONDS,
    ) -> None:
        self.root, self._ttl, self._clock, self._today = root, ttl, clock, today
        self._reading, self._settle = reading, settle
        self._serving: Serving | None = None
        self._refused: Look | None = None
        self._due = float("inf")
        self._loading = threading.Lock()
        self._looking = threading.Lock()
        self.last: ValidationResult | None = None
        """The findings of the latest look at the files, also where that version does not serve."""

    def current(self) -> Registry:
        """Returns the serving registry; the first call reads the files. Raises BrokenRegistry while none serves."""
        serving = self._serving
        if serving is None:
            return self._first()
        if self._clock() >= self._due:
            self._look_aside()
        return serving.registry

    def loaded(self) -> Registry | None:
        """Returns the serving registry, None where none serves; never reads."""
        return self._serving.registry if self._serving is not None else None

    def refresh(self) -> ValidationResult:
        """Reads the files and serves them if they hold no error; else the served version stays, and a warning in the
        result says so. Unchanged files change nothing. Errors of the files are findings, never exceptions."""
        with self._loading:
            return self._load()

    def _first(self) -> Registry:
        with self._loading:
            if self._serving is None:
                result = self._load()
                if self._serving is None:
                    raise BrokenRegistry(result, self._refused.files if self._refused else None)
            return self._serving.registry

    def _look_aside(self) -> None:
        """Starts a refresh in a thread of its own, one at a time; the lookup that noticed goes on at once."""
        if self._looking.acquire(blocking=False):
            try:
                threading.Thread(target=self._look, name="registry-refresh", daemon=True).start()
            except RuntimeError:  # no thread can start; the next lookup tries again
                self._looking.release()

    def _look(self) -> None:
        try:
            self.refresh()
        finally:
            self._looking.release()

    def _load(self) -> ValidationResult:
        try:
            result = self._take(self._settled(), self._today())
        except OSError as error:
            self._refused = None
            result = self._kept([unreadable(self.root, error)])
        finally:
            self._due = self._clock() + self._ttl if self._ttl is not None else float("inf")
        self.last = result
        return result

    def _take(self, tree: Tree, today: date) -> ValidationResult:
        serving = self._serving
        for known in (serving, self._refused):
            if known is not None and (tree, today) == (known.tree, known.today):
                return known.result
        files, findings = checked(tree, today)
        result = ValidationResult.of(self.root, findings)
        same = serving is not None and serving.tree == tree
        if result.valid or same:
            # What a new day brings does not end the serving of unchanged files. They are built again even so: an
            # override that has ended must not hold until the file that relied on it is repaired.
            try:
                registry = build(files)
            except (Unknown, ThresholdTypeError) as error:
                result = ValidationResult.of(self.root, [*findings, unbuildable(self.root, error)])
            else:
                if not result.valid:
                    ended = still_serving_stricter(self.root, registry.config_hash)
                    result = ValidationResult.of(self.root, [*findings, ended])
                since = serving.since if serving is not None and same else datetime.now(UTC)
                self._serving, self._refused = Serving(tree, today, files, result, registry, since), None
                return result
        result = self._kept(result.findings)
        self._refused = Look(tree, today, files, result)
        return result

    def _settled(self) -> Tree:
        """Returns the files once two readings agree, so that a checkout under way is not taken for a version."""
        found = self._reading(self.root)
        if any(known is not None and found == known.tree for known in (self._serving, self._refused)):
            return found
        for _ in range(_TRIES):
            time.sleep(self._settle)
            before, found = found, self._reading(self.root)
            if found == before:
                return found
        raise OSError("the files keep changing while they are read")

    def _kept(self, findings: Iterable[Finding]) -> ValidationResult:
        """Returns the result for a version that is refused."""
        serving = self._serving
        goes_on = [still_serving(self.root, serving.since, serving.registry.config_hash)] if serving else []
        return ValidationResult.of(self.root, [*findings, *goes_on])


_chosen: ReloadingRegistry | None = None
_choosing = threading.Lock()


def use(root: Path | str, ttl: float | None = TTL_SECONDS) -> None:
    """Serves this folder from now on. The first lookup reads it."""
    global _chosen
    _chosen = ReloadingRegistry(Path(root).absolute(), ttl)


def serving() -> ReloadingRegistry:
    """Returns the registry of the folder chosen by `use`; else of RAMPGATE_CONFIGS or `configs`, as set at the first
    call."""
    if _chosen is None:
        with _choosing:
            if _chosen is None:
                use(disk.default_root())
    return _chosen or serving()


def current() -> Registry:
    return (_chosen or serving()).current()


def loaded() -> Registry | None:
    return serving().loaded()


def refresh() -> ValidationResult:
    return serving().refresh()
