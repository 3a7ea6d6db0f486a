"""What judges score: items of a dataset with an agent's outputs, and traces of production (PC5 §5.1, §5.3). Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

from evalcore.judges.bindings import Context
from evalcore.scoring.sampling import share
from schemas.judges import Milestone

NO_OUTPUT: Final = "the item has no output of the agent's; an expected_output is never judged as one"
REFERENCES: Final = ("expected_output", "reference")
"""What an item may have to compare an output with, and may lack."""


@dataclass(frozen=True)
class Item:
    """One trace, or one item of a dataset. `source` is what a judge's bindings look into, in that `context`. `share`,
    from 0 to 1, is held against sampling rates; 0 for what every judge scores, as in a dataset (PC5 FR-11). `judges`:
    ids of those that fire on the item, None where all do; safety judges do in any case. `missing`: why
    there is nothing to judge; every judge leaves such an item unscored. `digest` is the hash of the bytes that `source`
    was read from, empty where nobody knows them."""

    id: str
    context: Context
    source: Mapping[str, Any]
    weight: float = 1.0
    share: float = 0.0
    judges: frozenset[str] | None = None
    missing: str = ""
    digest: bytes = b""


def items_of(given: Any, milestone: Milestone, schema: Mapping[str, Any]) -> list[Item]:
    """At pre_merge items of a dataset; else traces, and those among them that have an expected_output are items of a
    dataset too. `schema` is the manifest's. Raises TypeError for what is no list of objects."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Sequence):
        raise TypeError(f"traces_or_dataset: a list of objects is needed, not {type(given).__name__}")
    out = []
    for number, one in enumerate(given):
        if not isinstance(one, Mapping):
            raise TypeError(f"traces_or_dataset[{number}]: an object is needed, not {type(one).__name__}")
        golden = milestone is Milestone.PRE_MERGE or "expected_output" in one
        out.append(dataset_item(one, schema, number) if golden else trace_item(one, number))
    return out


def dataset_item(one: Mapping[str, Any], schema: Mapping[str, Any], number: int = 0, why: str = NO_OUTPUT) -> Item:
    """With the agent's `output` in it, and `tool_calls` where it made some. `why`: what to say where it has none."""
    source = completed(one, schema)
    if source.get("output") is None:
        return Item(identity(one, number), "offline", source, missing=why)
    return Item(identity(one, number), "offline", {"tool_calls": [], **source})


def trace_item(one: Mapping[str, Any], number: int = 0) -> Item:
    """A trace; one without an id has a share that no sampling rate leaves out."""
    known = one.get("trace_id") or one.get("id")
    if not isinstance(known, str):
        return Item(identity(one, number), "online", one)
    return Item(_spelled(known), "online", one, share=share(_bytes(known)))


def distinct(items: Iterable[Item]) -> list[Item]:
    """Each trace and each dataset item once, in the order of their first appearance and as the last one has it.

    Items are the same by their ids, and without one by their content: a file that repeats a line brings no evidence.
    """
    found: dict[tuple[str, str], Item] = {}
    for item in items:
        nameless = item.id.startswith("#") and _own_id(item.source) is None
        known = json.dumps(item.source, sort_keys=True, default=str) if nameless else item.id
        found[item.context, known] = item
    return list(found.values())


def identity(one: Mapping[str, Any], number: int = 0) -> str:
    """`metadata.id` (PC5 §5.3), else the item's own id, else its place."""
    return _own_id(one) or f"#{number + 1}"


def _own_id(one: Mapping[str, Any]) -> str | None:
    metadata = one.get("metadata")
    inner = metadata.get("id") if isinstance(metadata, Mapping) else None
    for known in (inner, one.get("id"), one.get("trace_id")):
        if isinstance(known, (str, int)) and not isinstance(known, bool) and known != "":
            return str(known)
    return None


def served(items: Iterable[Item], registered: Collection[str]) -> str | None:
    """The registered vertical that all items agree on: its limits hold also where a request does not name it.

    Where there are traces, they decide; items of a dataset are the platform's as well as the vertical's.
    """
    named: dict[str, set[str]] = {}
    for item in items:
        metadata = item.source.get("metadata")
        vertical = metadata.get("vertical") if isinstance(metadata, Mapping) else None
        named.setdefault(item.context, set()).add(vertical if isinstance(vertical, str) else "")
    only, *others = named.get("online") or named.get("offline") or {""}
    return only if not others and only in registered else None


def completed(one: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """With null for what an item may lack: references, and what the manifest's schema does not require. A judge that
    reads such a field reads nothing; one that reads a field nobody ever declared can't be bound."""
    source = {**dict.fromkeys(REFERENCES), **_optional(schema), **one}
    inner = schema.get("metadata")
    if isinstance(inner, Mapping) and "type" not in inner:
        found = one.get("metadata")
        source["metadata"] = {**_optional(inner), **(found if isinstance(found, Mapping) else {})}
    return source


def _optional(schema: Mapping[str, Any]) -> dict[str, None]:
    return {
        name: None for name, one in schema.items() if isinstance(one, Mapping) and one.get("required") is False
    }  # fmt: skip


def _bytes(known: str) -> bytes:
    """A trace's id as the stream's pools hold it."""
    try:
        return UUID(known).bytes
    except ValueError:
        return blake2b(known.encode(errors="replace"), digest_size=16).digest()


def _spelled(known: str) -> str:
    """A UUID in its canonical spelling: the same trace has one id, whoever wrote it down."""
    try:
        return str(UUID(known))
    except ValueError:
        return known
