"""What is said of a registry's version that can't be served (PC5 §5.7, FR-9)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from evalcore.corpus import Corpus
from evalcore.problems import Problem, Severity, ValidationResult
from evalcore.views import view
from schemas.judges import judge_id

_SHOWN = 5


class BrokenRegistry(ValueError):
    """Nothing serves: the first version that was read has errors, all of which are in `result`."""

    def __init__(self, result: ValidationResult, corpus: Corpus | None) -> None:
        self.result, self._corpus = result, corpus
        shown = "\n".join(f"  {problem}" for problem in result.errors[:_SHOWN])
        more = f"\n  and {len(result.errors) - _SHOWN} more" if len(result.errors) > _SHOWN else ""
        super().__init__(f"the registry in {result.path} can't be served:\n{shown}{more}")

    def raise_threshold_error(self, name: str, vertical: str | None) -> None:
        """ThresholdTypeError, where that is what is wrong with this judge (PC5 §9.5)."""
        name = judge_id(name.partition(".")[0])
        if self._corpus is not None and name in self._corpus.rules:
            view(self._corpus, name, vertical)


def still_serving(root: Path, since: datetime, config_hash: str) -> Problem:
    """Beside the errors of a new version: what goes on serving in its place."""
    message = (
        f"nothing of this version is used: the registry of {since:%Y-%m-%d %H:%M:%S} UTC ({config_hash}) keeps serving"
    )
    return _warning(root, message, "repair what stands above or put back the earlier files, then refresh")


def still_serving_stricter(root: Path, config_hash: str) -> Problem:
    """Beside the errors of the files that serve, which came with a new day: an exception that was allowed has ended."""
    message = f"these files were valid and go on serving ({config_hash}); what was allowed until now no longer holds"
    return _warning(
        root, message, "repair what stands above, then refresh; a process that starts takes no such version"
    )


def unreadable(root: Path, error: OSError) -> Problem:
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    fix = "RAMPGATE_CONFIGS names the folder"
    return Problem(str(root), 0, 0, "", "unreadable", f"can't be read: {what}", "PC5 FR-9", fix)


def unbuildable(root: Path, error: Exception) -> Problem:
    """No check found anything, and yet judges, categories and thresholds don't go together."""
    fix = "repair what is named here"
    return Problem(str(root), 0, 0, "", "unbuildable", f"can't be put together: {error}", "PC5 FR-9", fix)


def _warning(root: Path, message: str, fix: str) -> Problem:
    return Problem(str(root), 0, 0, "", "still-serving", message, "PC5 §5.7", fix, Severity.WARNING)
