"""A cluster in memory, whose objects come from YAML: for `--from`, the demo and tests."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import yaml

from evalcore.remediation.objects import Object, Why, is_name, is_namespace
from streams.cluster.port import Unread

Place = tuple[str, str, str]
"""Kind, namespace and name of an object."""
_Fast: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Fast):  # type: ignore[misc]
    """Reads a time as the text that it is in an API's answer."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as PyYAML declares it
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in _Fast.yaml_implicit_resolvers.items()
    }


def read_objects(text: str) -> list[Object]:
    """Returns the objects of a text's YAML documents, and of lists as `kubectl get -o yaml` writes them. Raises
    ValueError, with the line where there is one."""
    try:
        for event in yaml.parse(text, _Loader):
            if isinstance(event, yaml.AliasEvent):
                at = f"line {event.start_mark.line + 1}: "
                raise ValueError(f"{at}must be without aliases (*name), got one; write the value out")
        documents = enumerate(yaml.load_all(text, _Loader), 1)
        found: dict[Place, tuple[int, Object]] = {}
        for number, document in documents:
            for one in _objects(document, number):
                if (before := found.setdefault(_place(one), (number, one)))[1] is not one:
                    kind, namespace, name = _place(one)
                    again = f"{kind} {namespace}/{name} of document {before[0]} again"
                    raise ValueError(f"document {number}: must be there once, got {again}; keep one")
        return [one for _, one in found.values()]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or getattr(error, "reason", "")
        raise ValueError(f"{f'line {mark.line + 1}: ' if mark else ''}no YAML: {what}") from error


def written_objects(objects: Iterable[Object]) -> str:
    """Returns the objects as YAML documents, as `read_objects` takes them."""
    text: str = yaml.safe_dump_all([dict(one) for one in objects], sort_keys=False, allow_unicode=True)
    return text


class Twin:
    """The port `Cluster` in memory."""

    def __init__(self, objects: Iterable[Object] = ()) -> None:
        self.objects: dict[Place, Object] = {_place(one): one for one in objects}
        self._watches: list[tuple[Place, asyncio.Queue[tuple[str, Object]]]] = []

    async def get(self, kind: str, namespace: str, name: str) -> Object | Unread:
        if not (is_namespace(namespace) and is_name(name)):
            return Unread(Why.BAD_NAME)
        return self.objects.get((kind, namespace, name)) or Unread(Why.NOT_FOUND)

    async def watch(self, kind: str, namespace: str) -> AsyncGenerator[tuple[str, Object] | Unread, None]:
        changes: asyncio.Queue[tuple[str, Object]] = asyncio.Queue()
        for place, one in self.objects.items():
            if place[:2] == (kind, namespace):
                changes.put_nowait(("ADDED", one))
        watch = ((kind, namespace, ""), changes)
        self._watches.append(watch)
        try:
            while True:
                yield await changes.get()
        finally:
            self._watches.remove(watch)

    async def labelled(self, kind: str, namespace: str, label: tuple[str, str]) -> Sequence[Object] | Unread:
        if not is_namespace(namespace):
            return Unread(Why.BAD_NAME)
        there = [one for place, one in self.objects.items() if place[:2] == (kind, namespace)]
        return [one for one in there if (_metadata(one).get("labels") or {}).get(label[0]) == label[1]]

    async def apply(self, manifest: Object) -> Object | Unread:
        place = _place(manifest)
        if not (is_namespace(place[1]) and is_name(place[2])):
            return Unread(Why.BAD_NAME)
        before = self.objects.get(place)
        given = {"uid": str(uuid.uuid4()), "creationTimestamp": datetime.now(UTC).isoformat(timespec="seconds")}
        metadata = {**given, **_metadata(before or {}), **_metadata(manifest)}
        made = {**(before or {}), **manifest, "metadata": metadata}
        self.objects[place] = made
        self._note("ADDED" if before is None else "MODIFIED", place, made)
        return made

    async def delete(self, kind: str, namespace: str, name: str) -> Unread | None:
        if not (is_namespace(namespace) and is_name(name)):
            return Unread(Why.BAD_NAME)
        gone = self.objects.pop((kind, namespace, name), None)
        if gone is not None:
            self._note("DELETED", (kind, namespace, name), gone)
            for place, one in [*self.objects.items()]:
                owners = _metadata(one).get("ownerReferences") or []
                if any(owner.get("uid") == _metadata(gone).get("uid") for owner in owners):
                    await self.delete(*place)
        return None

    async def close(self) -> None:
        """Returns at once: there is no connection."""

    def _note(self, event: str, place: Place, changed: Object) -> None:
        for (kind, namespace, _), changes in self._watches:
            if place[:2] == (kind, namespace):
                changes.put_nowait((event, changed))


def _objects(document: Any, number: int) -> Iterator[Object]:
    """Yields the objects of the document with this number; none of an empty one. Raises ValueError."""
    if document is None:
        return
    if isinstance(document, Mapping) and isinstance(items := document.get("items"), Sequence):
        for item in items:
            yield from _objects(item, number)
        return
    kind, namespace, name = _place(document) if isinstance(document, Mapping) else ("", "", "")
    if not (kind and is_namespace(namespace) and is_name(name)):
        raise ValueError(f"document {number}: must be an object with kind, metadata.namespace and metadata.name")
    yield document


def _place(of: Object) -> Place:
    metadata = _metadata(of)
    return str(of.get("kind") or ""), str(metadata.get("namespace")), str(metadata.get("name"))


def _metadata(of: Object) -> dict[str, Any]:
    found = of.get("metadata")
    return dict(found) if isinstance(found, Mapping) else {}
