"""Makes annotation queues in Opik, and reads what each author said there.

Nothing is made twice: a queue's id is given, definitions are known by their names, and an item that a queue has already
makes no difference.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from agents.ports import Unavailable
from streams.opik.client import (
    ApiError,
    OpikClient,
    Query,
    Refused,
    cursor_pages,
    numbered_pages,
    or_none,
    persist,
    reason,
)

DEFINITIONS = "feedback-definitions"
QUEUES = "annotation-queues"
PAGE = 100
MOST = 1_000
"""Items in one request, and traces in a page."""
TAKEN = 409
T = TypeVar("T")


@dataclass(frozen=True)
class Definition:
    """What people fill in for a trace: its name in Opik, its kind, and the details of that kind."""

    name: str
    kind: str
    details: Mapping[str, Any]
    description: str = ""


@dataclass(frozen=True)
class Queue:
    """A queue of traces of one project. `annotators`: how many people score a trace before it is done."""

    id: str
    project_id: str
    name: str
    instructions: str
    definitions: tuple[str, ...]
    annotators: int


class Said(NamedTuple):
    """What one author said of a trace under one name."""

    trace: str
    response: str
    name: str
    author: str
    value: float


class OpikQueues:
    """Raises Unauthorized where Opik refuses the key, Unavailable where it can't be reached, Refused where it refuses a
    request."""

    def __init__(self, client: OpikClient, retry_seconds: float) -> None:
        self._client, self._seconds = client, retry_seconds

    async def define(self, wanted: Definition) -> None:
        """Makes a definition where the workspace has none of that name. Raises Refused where it has another one."""
        there = await self._definition(wanted.name)
        if there is None:
            body = {"type": wanted.kind, "name": wanted.name, "details": dict(wanted.details)}
            body |= {"description": wanted.description} if wanted.description else {}
            await self._unless_taken(DEFINITIONS, body)
            there = await self._definition(wanted.name)
        if there is not None and (there.get("type"), there.get("details")) != (wanted.kind, dict(wanted.details)):
            raise Refused(
                f"Opik: the workspace has another feedback definition {wanted.name!r}: rename or remove it there, "
                f"or make it {wanted.kind}, {dict(wanted.details)}"
            )

    async def make(self, queue: Queue, traces: Sequence[str]) -> None:
        """Makes the queue where there is none of that id, and puts the traces in."""
        path = f"{QUEUES}/{quote(queue.id, '')}"
        if await self._call(lambda: or_none(self._client.call("GET", path))) is None:
            body = {
                "id": queue.id, "project_id": queue.project_id, "name": queue.name, "scope": "trace",
                "instructions": queue.instructions, "comments_enabled": True,
                "feedback_definition_names": list(queue.definitions), "annotators_per_item": queue.annotators,
            }  # fmt: skip
            await self._unless_taken(QUEUES, body)
        for first in range(0, len(traces), MOST):
            ids = {"ids": list(traces[first : first + MOST])}
            await self._call(partial(self._client.call, "POST", f"{path}/items/add", ids))

    async def said(self, queue_id: str, project: str, names: frozenset[str]) -> AsyncIterator[list[Said]]:
        """What each author said under these names of the traces in the queue, in pages; what was said in another queue
        is not of this one. The traces come without input and output. Raises Refused where Opik tells no authors."""
        filters = [{"field": "annotation_queue_ids", "operator": "contains", "key": "", "value": queue_id}]
        search = {"project_name": project, "filters": filters, "exclude": ["input", "output"], "truncate": True}

        async def ask(after: dict[str, Any]) -> list[dict[str, Any]]:
            return await self._call(partial(self._client.lines, "traces/search", search | after))

        async for page in cursor_pages(ask, MOST):
            yield [one for trace in page for one in _said(trace, queue_id, names)]

    async def _definition(self, name: str) -> dict[str, Any] | None:
        async def ask(page: Query) -> dict[str, Any]:
            query = {"name": name, **page}
            return await self._call(partial(self._client.call, "GET", DEFINITIONS, query=query))

        async for page in numbered_pages(ask, PAGE):
            for one in page:
                if one.get("name") == name:  # Opik's query finds parts of names
                    return dict(one)
        return None

    async def _unless_taken(self, path: str, body: dict[str, Any]) -> None:
        """A creation; another process may have done the same, or an earlier try whose answer was lost."""

        async def create() -> None:
            try:
                await self._client.call("POST", path, body)
            except ApiError as error:
                if error.status_code != TAKEN:
                    raise

        await self._call(create)

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await persist(call, seconds=self._seconds)
        except ApiError as error:
            if error.status_code >= 500:
                raise Unavailable(f"Opik answers {error.status_code}: {reason(error)}") from error
            raise Refused(f"Opik refuses: {error.status_code}: {reason(error)}") from error


def _said(trace: Mapping[str, Any], queue_id: str, names: frozenset[str]) -> list[Said]:
    found = []
    metadata = trace.get("metadata")
    response = str(metadata.get("response_id") or "") if isinstance(metadata, dict) else ""
    for score in trace.get("feedback_scores") or ():
        name, by_author = score.get("name"), score.get("value_by_author")
        if name not in names:
            continue
        if not isinstance(by_author, dict) or not by_author:
            raise Refused(f"Opik tells no author of {name} on trace {trace.get('id')}: take sheets in its place")
        for key, one in by_author.items():
            if one.get("source_queue_id") in (None, "", queue_id) and one.get("value") is not None:
                author = str(one.get("author") or key)
                found.append(Said(str(trace["id"]), response, str(name), author, float(one["value"])))
    return found
