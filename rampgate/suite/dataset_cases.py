"""Reads the cases of a suite that are a dataset in Opik, at one version of it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from agents.ports import Unauthorized, Unavailable
from rampgate.console import Failure, run
from rampgate.input_files import BadFile
from rampgate.registry.dataset_check import RETRY_SECONDS, opened
from rampgate.registry.verticals import load_verticals
from rampgate.settings import Settings
from rampgate.suite.suite_files import Placed
from schemas.checks.suite import SuiteFile
from schemas.verticals import Vertical

if TYPE_CHECKING:
    from streams.opik.datasets import DatasetItems


def dataset_cases(settings: Settings, file: SuiteFile) -> Iterable[Placed]:
    """Yields the items of the version that the suite names, else of the newest, each behind a name of its place.

    The dataset is the project's that the suite names, else of the vertical's project. Raises BadFile where Opik has no
    such dataset or version, and Failure where Opik can't be asked.
    """
    name, version = file.cases.dataset or "", file.cases.version
    verticals = load_verticals(settings.configs, needed=file.vertical is not None)
    owner = verticals.get(file.vertical) if file.vertical is not None else None
    if file.vertical is not None and owner is None:
        raise BadFile(f"vertical: {file.vertical!r} is not registered; there are {', '.join(sorted(verticals))}")
    project = file.cases.project or (owner.project if owner is not None else None)
    try:
        found = run(partial(_read, settings, name, project, version, list(verticals.values())))
    except (Unauthorized, Unavailable) as error:
        raise Failure(f"cases.dataset: {name!r} can't be read: {error}") from error
    if found is None:
        raise BadFile(f"cases.dataset: Opik has no dataset {name!r}" + (f" in {project!r}" if project else ""))
    if found.version is None:
        newest = f"; the newest is {found.latest}" if found.latest is not None else ""
        raise BadFile(f"cases.version: Opik's {name!r} has no version {version}{newest}")
    if not found.items:
        raise BadFile(f"cases.dataset: Opik's {name} v{found.version} has no item")
    return [(f"Opik's {name} v{found.version}, item {number}", item) for number, item in enumerate(found.items, 1)]


async def _read(
    settings: Settings, name: str, project: str | None, version: int | None, verticals: Iterable[Vertical]
) -> DatasetItems | None:
    async with opened(settings, project, verticals, RETRY_SECONDS) as datasets:
        return await datasets.read(name, project, version)
