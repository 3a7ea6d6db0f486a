"""Reads and writes baselines: versions of an agent's answers, each a file beside the spec (AgentCI Step 3.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from evalcore.trajectory.record import Trajectory, same_agent, trajectory_of
from rampgate.console import Failure, json_text
from rampgate.files import locked, replace_file, writing
from rampgate.input_files import BadFile, document
from schemas.spec_baselines import BaselineFile, KeptQuery

VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
OF_TRACES: Final = (
    "output", "tool_calls", "llm_calls", "handoffs", "usage", "retrieval", "requested_calls", "cost_usd",
    "spans_dropped",
)  # fmt: skip
"""Fields of a stored trace that a trajectory is read from, which a baseline keeps beside `latency_ms`."""
REMEDY: Final = "`rampgate spec save` writes one"


@dataclass(frozen=True)
class Baselines:
    """The versions of an agent's answers in a folder. Its methods raise Failure."""

    folder: Path
    agent: str
    _read: dict[str, BaselineFile | None] = field(default_factory=dict, repr=False, compare=False)

    def read(self, version: str) -> BaselineFile | None:
        """Returns a version; None where there is none. Raises Failure for another agent's, or what is no baseline."""
        if version not in self._read:
            path = self.file(version)
            self._read[version] = self._checked(path, version) if path.exists() else None
        return self._read[version]

    def named(self, version: str) -> BaselineFile:
        """Returns a version that a user names. Raises Failure where there is none."""
        found = self.read(version)
        if found is None:
            known = ", ".join(self.versions) or "none"
            raise Failure(f"{self.file(version)}: no baseline {version!r}; those there are: {known}; {REMEDY}")
        return found

    @property
    def versions(self) -> list[str]:
        """The names of all versions, sorted."""
        return sorted(path.stem for path in self.folder.glob("*.json") if VERSION.fullmatch(path.stem))

    def write(self, made: BaselineFile, *, replace: bool) -> Path:
        """Writes a version and returns its file. Raises Failure where there is one and `replace` is false, always where
        that is another agent's, and while another process writes one here."""
        path = self.file(made.version)
        with writing(path):
            self.folder.mkdir(parents=True, exist_ok=True)
        with writing(path), locked(self.folder):
            if path.exists():
                self._checked(path, made.version)
                if not replace:
                    raise Failure(f"{path}: is there already; name another --version, or give --replace")
            replace_file(path, json_text(made.model_dump(mode="json", warnings="error")))
        return path

    def file(self, version: str) -> Path:
        """Returns where a version is. Raises Failure for a name that leads elsewhere."""
        if not VERSION.fullmatch(version):
            raise Failure(
                f"version: must be letters, digits and ._- alone, 100 at most, got {version[:100]!r}; "
                "it names a file in the spec's baseline_dir"
            )
        path = self.folder / f"{version}.json"
        if path.is_symlink():
            raise Failure(f"{path}: must be a file, got a link; put the file itself there")
        return path

    def _checked(self, path: Path, version: str) -> BaselineFile:
        found, _ = document(path, BaselineFile, REMEDY)
        if found.version != version:
            raise BadFile(f"{path}: version: must be {version!r}, as the file is named, got {found.version!r}")
        if not same_agent(found.agent, self.agent):
            raise BadFile(
                f"{path}: agent: must be {self.agent!r}, as the spec has it, got {found.agent!r}; "
                "give each agent a baseline_dir of its own"
            )
        return found


def trajectories(kept: KeptQuery) -> list[Trajectory]:
    """Returns the trajectories of a query's answers, the first one's first."""
    return [trajectory_of(trace, trace.get("latency_ms")) for trace in (kept.trace, *kept.repeats)]


def kept_trace(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a baseline keeps of a stored trace."""
    return {name: trace[name] for name in (*OF_TRACES, "latency_ms") if name in trace}
