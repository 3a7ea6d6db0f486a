"""Reads the datasets that the manifest names from Opik."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from agents.ports import Unavailable
from evalcore.manifest.dataset import DatasetThere
from evalcore.scoring.items import category_of
from streams.opik.client import ApiError, OpikClient, cursor_pages, or_none, persist, reason

PAGE = 2_000
_NUMBERED = re.compile(r"v(\d{1,9})", re.ASCII)


@dataclass(frozen=True)
class DatasetItems:
    """`version` is the version that was asked for, None where Opik has none such; `items` are that version's, else
    today's."""

    latest: int | None
    version: int | None
    items: list[dict[str, Any]]


class OpikDatasets:
    """Raises Unauthorized where Opik refuses the key, Unavailable where it gives no usable answer."""

    def __init__(self, client: OpikClient, retry_seconds: float) -> None:
        self._client, self._seconds = client, retry_seconds

    async def look(self, name: str, project: str | None, version: int) -> DatasetThere | None:
        """What the manifest has to know of a dataset; None where there is no dataset of this name."""
        found = await self.read(name, project, version)
        if found is None:
            return None
        categories = Counter(category_of(item) for item in found.items)
        return DatasetThere(found.latest, found.version, len(found.items), categories)

    async def read(self, name: str, project: str | None, version: int | None) -> DatasetItems | None:
        """The dataset's items, without a version those of the newest; None where there is no dataset of this name."""
        try:
            return await self._read(name, project, version)
        except ApiError as error:
            raise Unavailable(f"Opik: datasets: {reason(error)}") from error

    async def _read(self, name: str, project: str | None, version: int | None) -> DatasetItems | None:
        within: dict[str, Any] = {} if project is None else {"project_name": project}
        dataset = await or_none(self._post("datasets/retrieve", {"dataset_name": name, **within}))
        if dataset is None:
            return None
        newest = _NUMBERED.fullmatch((dataset.get("latest_version") or {}).get("version_name") or "")
        latest = int(newest[1]) if newest is not None else None
        wanted = latest if version is None else version
        versions = f"datasets/{quote(str(dataset['id']), '')}/versions/retrieve"
        if wanted is not None and await or_none(self._post(versions, {"version_name": f"v{wanted}"})) is None:
            wanted = None
        if wanted is not None:
            within["dataset_version"] = f"v{wanted}"
        # "steam_limit" is Opik's own spelling.
        pages = cursor_pages(partial(self._page, name, within), PAGE, limited_by="steam_limit")
        return DatasetItems(
            latest=latest,
            version=wanted,
            items=[_item(item) async for page in pages for item in page],
        )

    async def _page(self, name: str, within: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
        body = {"dataset_name": name, **within, **after}
        return await persist(partial(self._client.lines, "datasets/items/stream", body), seconds=self._seconds)

    def _post(self, path: str, body: dict[str, Any]) -> Awaitable[dict[str, Any]]:
        return persist(partial(self._client.call, "POST", path, body), seconds=self._seconds)


def _item(item: dict[str, Any]) -> dict[str, Any]:
    """The item's fields, which Opik keeps below `data`, and the id that Opik gave it unless it has one of its own."""
    data = item.get("data")
    return {"id": item.get("id"), **(data if isinstance(data, dict) else {})}
