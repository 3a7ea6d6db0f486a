"""Looks up the manifest's dataset in the Opik project that holds it. An edge: it reads and never writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.ports import Unauthorized, Unavailable
from evalcore.gates.golden import GoldenSet
from evalcore.manifest.dataset import DatasetThere, unfit
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import Parsed
from rampgate.settings import Settings, revealed
from schemas.manifests import Dataset, ManifestFile
from schemas.settings import read_secret
from schemas.verticals import Vertical

if TYPE_CHECKING:
    from streams.opik.datasets import OpikDatasets


PATIENCE = 20.0
"""Seconds of trying again where Opik does not answer a gate."""


@dataclass(frozen=True)
class DatasetCheck:
    """`error`: why it could not be looked up; nothing is known of it then."""

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


async def look(settings: Settings, manifest: Parsed[ManifestFile], verticals: Iterable[Vertical]) -> DatasetCheck:
    """One try: who can't reach Opik learns that from the sync beside it."""
    wanted = manifest.model.dataset
    try:
        async with opened(settings, wanted, verticals, 0.0) as datasets:
            there = await datasets.look(wanted.name, wanted.project, wanted.version)
    except (Unauthorized, Unavailable) as error:
        return DatasetCheck(wanted, None, (), str(error))
    return DatasetCheck(wanted, there, tuple(unfit(manifest, there)))


async def read_whole(settings: Settings, wanted: Dataset, verticals: Iterable[Vertical]) -> GoldenSet | None:
    """With its items at its version; None where Opik has none of the name, or no such version: what is there today is
    another dataset. Raises Unavailable and Unauthorized."""
    async with opened(settings, wanted, verticals, PATIENCE) as datasets:
        found = await datasets.read(wanted.name, wanted.project, wanted.version)
    if found is None or found.version is None:
        return None
    where = f"Opik's {wanted.name} v{wanted.version}"
    return GoldenSet(found.items, where, wanted.name, found.version, found.latest)


@asynccontextmanager
async def opened(
    settings: Settings, wanted: Dataset, verticals: Iterable[Vertical], seconds: float
) -> AsyncIterator[OpikDatasets]:
    """With the credentials of the vertical whose project the dataset is in, else the operator's. `seconds` of trying
    again. Raises Unauthorized where the vertical's key can't be read."""
    from streams.opik.client import OpikClient
    from streams.opik.datasets import OpikDatasets

    owner = next((one for one in verticals if one.project == wanted.project), None)
    key = revealed(settings.opik_api_key)
    workspace = settings.opik_workspace
    if owner is not None and "workspace" in owner.model_fields_set:
        workspace = owner.workspace
    try:
        if owner is not None and owner.api_key_file is not None:
            key = read_secret(owner.api_key_file)
    except ValueError as error:
        raise Unauthorized(f"api_key_file of {owner.name if owner else ''}: {error}") from error
    client = OpikClient(settings.opik, workspace, key, settings.opik_timeout_seconds, 1)
    try:
        yield OpikDatasets(client, seconds)
    finally:
        await client.close()
