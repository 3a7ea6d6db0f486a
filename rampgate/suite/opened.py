"""Reads a suite with all that stands beside it: the registry of its judges, and where its store and results are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalcore.gates.golden import OF_ANSWERS
from evalcore.registry.judge import Judge
from evalcore.yaml.suggestions import UnknownJudge
from rampgate.console import Failure
from rampgate.input_files import content
from rampgate.settings import Settings
from rampgate.store.place import Place, place_of
from rampgate.store.sqlite_file import STORE
from rampgate.suite.scoring import Rubric
from rampgate.suite.suite_files import Placed, Suite, read_suite
from schemas.checks.suite import SuiteFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalcore.registry.registry import Registry
    from evalcore.suite.pairwise.question import PairJudge

FOLDER: Final = ".rampgate"
"""Beside the suite's file: its store, and results without another place."""
_QUERIES: Final = re.compile(rb"^[\"']?queries[\"']?\s*:", re.MULTILINE)


@dataclass(frozen=True)
class Opened:
    """A suite, its judges, what scores its answers, and those judges that are asked about pairs. Results and the store
    are in `home`, beside its file, also where the candidate is a pull request's."""

    settings: Settings
    suite: Suite
    judges: list[Judge]
    rubric: Rubric
    comparing: list[PairJudge]
    home: Path
    place: Place

    def results_file(self, *, smoke: bool) -> Path:
        """Where a run of this configuration leaves its results."""
        kind = "smoke" if smoke else "full"
        return self.home / f"{self.suite.file.suite}-{self.suite.configuration[:12]}-{kind}.jsonl"


def open_suite(
    path: Path, settings: Settings, store: str | None, proposed: Path | None = None, *, judged: bool = True
) -> Opened:
    """Returns the suite; without its judges where nothing is `judged`. `proposed`: the folder that the candidate is
    taken from. Raises Failure."""
    suite = suite_in(settings, path, proposed)
    asked = suite.file.judges or suite.file.pairwise
    registry = None
    if asked and judged:
        from rampgate.command import Context

        registry = Context.of(configs=settings.configs).judging(suite.file.vertical)
    judges = _judges(suite.file, registry)
    rubric = Rubric(
        judges, suite.checks, registry.manifest.get("schema", {}) if registry is not None else {}, suite.evidence
    )
    home = path.parent / FOLDER
    place = place_of(store, home / STORE, settings)
    return Opened(settings, suite, judges, rubric, _comparing(suite.file, registry), home, place)


def suite_in(settings: Settings, path: Path, proposed: Path | None = None) -> Suite:
    """Returns the suite of its own file, with its cases from Opik where they are a dataset, or of an agent's spec.
    Raises BadFile and Failure."""
    if is_spec(path):
        from rampgate.suite.spec_files import open_spec

        return open_spec(path, proposed=proposed).suite

    def fetched(file: SuiteFile) -> Iterable[Placed]:
        from rampgate.suite.dataset_cases import dataset_cases

        return dataset_cases(settings, file)

    return read_suite(path, fetched, proposed)


def is_spec(path: Path) -> bool:
    """Says whether the file is an agent's spec, and no suite's own file."""
    return path.is_file() and _QUERIES.search(content(path)) is not None


def _judges(file: SuiteFile, registry: Registry | None) -> list[Judge]:
    if registry is None:
        return []
    try:
        return [registry.judge(name, file.vertical) for name in file.judges]
    except UnknownJudge as error:
        raise Failure(f"judges: {error}") from error


def _comparing(file: SuiteFile, registry: Registry | None) -> list[PairJudge]:
    if registry is None:
        return []
    from evalcore.suite.pairwise.question import NotComparing, pair_judge

    try:
        named = [registry.judge(name, file.vertical) for name in file.pairwise]
        return [pair_judge(judge, OF_ANSWERS) for judge in {judge.id: judge for judge in named}.values()]
    except (UnknownJudge, NotComparing) as error:
        raise Failure(f"pairwise: {error}") from error
