"""A dataset in Opik, as far as the manifest speaks of it. Only reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import orjson

from agents.ports import Unavailable
from evalcore.gates.golden import category_of
from evalcore.manifest.dataset import DatasetThere
from streams.opik.client import ApiError, OpikClient, OutOfTries, persist, reason

PAGE = 2_000
_NUMBERED = re.compile(r"v(\d{1,9})", re.ASCII)
T = TypeVar("T")


@dataclass(frozen=True)
class DatasetItems:
    """`version` is the one asked for, None where there is none such; `items` are that version's, else today's."""

    latest: int | None
    version: int | None
    items: list[dict[str, Any]]


class OpikDatasets:
    """Raises Unauthorized where Opik refuses the key, and Unavailable where it can't be reached or makes no sense."""

    def __init__(self, client: OpikClient, retry_seconds: float) -> None:
        self._client, self._seconds = client, retry_seconds

    async def look(self, name: str, project: str | None, version: int) -> DatasetThere | None:
        """None where there is no dataset of the name."""
        found = await self.read(name, project, version)
        if found is None:
            return None
        categories = Counter(category_of(item) for item in found.items)
        return DatasetThere(found.latest, found.version, len(found.items), categories)

    async def read(self, name: str, project: str | None, version: int) -> DatasetItems | None:
        """None where there is no dataset of the name."""
        within: dict[str, Any] = {} if project is None else {"project_name": project}
        found = await self._or_none("datasets/retrieve", {"dataset_name": name, **within})
        if found is None:
            return None
        versions = f"datasets/{quote(str(found['id']), '')}/versions/retrieve"
        wanted = await self._or_none(versions, {"version_name": f"v{version}"})
        latest = _NUMBERED.fullmatch((found.get("latest_version") or {}).get("version_name") or "")
        pinned = {**within, "dataset_version": f"v{version}"} if wanted is not None else within
        return DatasetItems(
            latest=int(latest[1]) if latest is not None else None,
            version=version if wanted is not None else None,
            items=[_item(one) for one in await self._items(name, pinned)],
        )

    async def _items(self, name: str, within: dict[str, Any]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        after: dict[str, Any] = {}
        while True:
            page = await self._call(partial(self._page, name, {**within, **after}))
            items += page
            if len(page) < PAGE:
                return items
            after = {"last_retrieved_id": page[-1]["id"]}

    async def _page(self, name: str, within: dict[str, Any]) -> list[dict[str, Any]]:
        # "steam_limit" is Opik's own spelling.
        body = orjson.dumps({"dataset_name": name, "steam_limit": PAGE, **within})
        whole = await self._client.send("POST", "datasets/items/stream", body)
        return [orjson.loads(line) for line in whole.splitlines() if line.strip()]

    async def _or_none(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """None for what is not there."""
        try:
            return await persist(partial(self._client.call, "POST", path, body), seconds=self._seconds)
        except ApiError as error:
            if error.status_code == 404:
                return None
            raise Unavailable(f"Opik: datasets: {reason(error)}") from error
        except OutOfTries as error:
            raise Unavailable(f"Opik: {error}") from error

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await persist(call, seconds=self._seconds)
        except ApiError as error:
            raise Unavailable(f"Opik: datasets: {reason(error)}") from error
        except (OutOfTries, orjson.JSONDecodeError) as error:
            raise Unavailable(f"Opik: datasets: {error}") from error


def _item(one: dict[str, Any]) -> dict[str, Any]:
    """Its fields, which Opik keeps below `data`, and the id that Opik gave it unless it has one of its own."""
    data = one.get("data")
    return {"id": one.get("id"), **(data if isinstance(data, dict) else {})}
