"""Reads the manifest's dataset from the Opik project that holds it, and never writes it. An edge."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.ports import Unauthorized, Unavailable
from evalcore.gates.golden import GoldenSet
from evalcore.manifest.dataset import DatasetThere, named, unfit
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import Parsed
from rampgate.settings import Settings
from schemas.manifests import Dataset, ManifestFile
from schemas.verticals import Vertical

if TYPE_CHECKING:
    from streams.opik.datasets import OpikDatasets


RETRY_SECONDS = 20.0
"""Seconds for which a gate retries while Opik does not answer."""


@dataclass(frozen=True)
class DatasetCheck:
    """The dataset that the manifest wants and the one in Opik. `error` says why Opik could not be read."""

    wanted: Dataset
    there: DatasetThere | None
    findings: tuple[Finding, ...]
    error: str | None = None

    def document(self) -> dict[str, Any]:
        there = self.there
        return {
            "name": self.wanted.name,
            "project": self.wanted.project,
            "version": self.wanted.version,
            "there": None if self.error else there is not None,
            "latest": there.latest if there is not None else None,
            "items": there.items if there is not None else None,
            "categories": dict(sorted(there.categories.items())) if there is not None else {},
            "error": self.error,
        }


async def look(
    settings: Settings, manifest: Parsed[ManifestFile], verticals: Sequence[Vertical], vertical: str | None = None
) -> DatasetCheck:
    """Compare the golden set that the vertical is judged on with the manifest. Tries once: the sync that follows
    reports an unreachable Opik."""
    _, wanted = named(manifest.model, vertical)
    owner = next((one for one in verticals if one.name == vertical), None)
    if wanted.project is None and owner is not None and vertical in manifest.model.datasets:
        wanted = wanted.model_copy(update={"project": owner.project})
    try:
        async with opened(settings, wanted.project, verticals, 0.0) as datasets:
            there = await datasets.look(wanted.name, wanted.project, wanted.version)
    except (Unauthorized, Unavailable) as error:
        return DatasetCheck(wanted, None, (), str(error))
    return DatasetCheck(wanted, there, tuple(unfit(manifest, there, vertical)))


async def read_whole(settings: Settings, wanted: Dataset, verticals: Iterable[Vertical]) -> GoldenSet | None:
    """The dataset's items at its version; None where Opik has no such dataset or version. Raises Unavailable and
    Unauthorized."""
    async with opened(settings, wanted.project, verticals, RETRY_SECONDS) as datasets:
        found = await datasets.read(wanted.name, wanted.project, wanted.version)
    if found is None or found.version is None:
        return None
    where = f"Opik's {wanted.name} v{wanted.version}"
    return GoldenSet(found.items, where, wanted.name, found.version, found.latest)


@asynccontextmanager
async def opened(
    settings: Settings, project: str | None, verticals: Iterable[Vertical], seconds: float
) -> AsyncIterator[OpikDatasets]:
    """A gateway to a project's datasets, which retries for `seconds`.

    It has the credentials of the vertical that owns the project, else the operator's. Raises Unauthorized where the
    vertical's key can't be read.
    """
    from rampgate.registry.opik_reading import client_of
    from streams.opik.datasets import OpikDatasets

    owner = next((one for one in verticals if one.project == project), None)
    async with client_of(settings, owner) as client:
        yield OpikDatasets(client, seconds)
