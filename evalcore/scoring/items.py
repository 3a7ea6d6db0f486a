"""Makes the items that judges score: of a dataset with an agent's outputs, and of traces (PC5 §5.1, §5.3). Pure."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

from evalcore.judges.bindings import PLAIN, Context, Unbound, parts, resolve, vertical_named
from evalcore.scoring.sampling import share
from schemas.judges import Milestone
from schemas.verticals import TraceLayout

NO_OUTPUT: Final = "the item has no output of the agent's; an expected_output is never judged as one"
NO_ANSWER: Final = "the agent gave no output"
NO_INPUT: Final = "neither the trace's record nor Opik has its input"
SHARED_WORKFLOW: Final = "another trace of the sample is completed by the same workflow"
REFERENCES: Final = ("expected_output", "reference")
"""Fields with which an output may be compared; an item may lack them."""


@dataclass(frozen=True)
class Failed:
    """The reason why the candidate has no answer to an item. `may_pass`: the next try may have one, as after a timeout,
    429 or 5xx."""

    why: str
    may_pass: bool = False


def category_of(item: Mapping[str, Any]) -> str:
    """Returns `metadata.category`, or `category` where the dataset has no metadata; "" where there is none."""
    metadata = item.get("metadata")
    category = metadata.get("category") if isinstance(metadata, Mapping) else item.get("category")
    return category if isinstance(category, str) else ""


@dataclass(frozen=True)
class Item:
    """One trace, or one item of a dataset.

    `source` is what a judge's bindings for `context` read. `share`, from 0 to 1, is compared with sampling rates; it is
    0 where every judge scores, as in a dataset (PC5 FR-11). `judges` are the ids of those that fire on the item, None
    for all; safety judges fire in any case. `missing` says why there is nothing to judge; every judge leaves such an
    item unscored. `digest` is the hash of the bytes that `source` was read from, empty where they are not known.
    `later` waits for the agent's answer where that is still to come, and returns the item with it, which alone is
    judged; all else of the item is known before. Who scores the item calls it, once.
    """

    id: str
    context: Context
    source: Mapping[str, Any]
    weight: float = 1.0
    share: float = 0.0
    judges: frozenset[str] | None = None
    missing: str = ""
    digest: bytes = b""
    later: Callable[[], Awaitable[Item]] | None = field(default=None, compare=False)


def says_nothing(answer: Mapping[str, Any], path: str = "output", layout: TraceLayout | None = None) -> bool:
    """Tells whether the agent gave no answer: none at the path, or a blank text without a call of a tool beside it. An
    output that lacks the path is an answer, which judges can't read."""
    try:
        said = resolve(path, answer, layout)
    except Unbound:
        stated = layout.answer if layout is not None and path == "answer" else path
        return answer.get("output") is None and parts(stated or "output")[0][0] == "output"
    return said is None or (isinstance(said, str) and not said.strip() and not _calls(answer, layout or PLAIN))


def _calls(answer: Mapping[str, Any], layout: TraceLayout) -> Any:
    try:
        return resolve("tools", answer, layout)
    except Unbound:
        return answer.get("tool_calls")


def items_of(given: Any, milestone: Milestone, schema: Mapping[str, Any]) -> list[Item]:
    """Makes items of what a caller gives: at pre_merge of a dataset's items; else of traces, where one with an
    expected_output is an item of a dataset too. Of a turn with several traces only the one that ended last stays, as
    where the stream reads them. `schema` is the manifest's. Raises TypeError for what is no list of objects."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Sequence):
        raise TypeError(f"traces_or_dataset: a list of objects is needed, not {type(given).__name__}")
    out = []
    for number, one in enumerate(given):
        if not isinstance(one, Mapping):
            raise TypeError(f"traces_or_dataset[{number}]: an object is needed, not {type(one).__name__}")
        golden = milestone is Milestone.PRE_MERGE or "expected_output" in one
        out.append(dataset_item(one, schema, number) if golden else trace_item(one, number))
    return _last_of_turns(out)


def turn_of(trace: Mapping[str, Any]) -> str | None:
    """Returns the id of a trace's turn, which its event has beside the metadata and Opik in it; None without one."""
    metadata = trace.get("metadata")
    inner = metadata.get("response_id") if isinstance(metadata, Mapping) else None
    return next((known for known in (trace.get("response_id"), inner) if isinstance(known, str) and known), None)


def _last_of_turns(items: Sequence[Item]) -> list[Item]:
    """Leaves of each trace what was posted last of it, and of each turn the trace that ended last; of those that ended
    together, the later one. Traces without an id are told apart by `distinct`."""
    return _latest(_latest(items, lambda item: item.id), lambda item: turn_of(item.source) or item.id)


def _latest(items: Iterable[Item], same: Callable[[Item], str]) -> list[Item]:
    latest: dict[tuple[str, str], Item] = {}
    for item in items:
        known = item.context, same(item) if item.context == "online" else item.id
        earlier = latest.get(known)
        if earlier is None or item.context == "offline" or _ended(item.source) >= _ended(earlier.source):
            latest.pop(known, None)  # it stands where what is left of it was posted
            latest[known] = item
    return list(latest.values())


def _ended(trace: Mapping[str, Any]) -> float:
    said = trace.get("ended_at") or trace.get("end_time")
    try:
        moment = datetime.fromisoformat(said) if isinstance(said, str) else None
    except ValueError:
        moment = None
    if moment is None:
        return 0.0
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def dataset_item(one: Mapping[str, Any], schema: Mapping[str, Any], number: int = 0, why: str = NO_OUTPUT) -> Item:
    """Makes a dataset's item, which holds the agent's `output`, and its `tool_calls` where it made some. `why` is said
    of an item without an output."""
    source = completed(one, schema)
    if says_nothing(source):
        return Item(identity(one, number), "offline", source, missing=why)
    return Item(identity(one, number), "offline", {"tool_calls": [], **source})


def trace_item(one: Mapping[str, Any], number: int = 0) -> Item:
    """Makes a trace's item; one without an id has a share that no sampling rate leaves out."""
    known = one.get("trace_id") or one.get("id")
    if not isinstance(known, str):
        return Item(identity(one, number), "online", one)
    return Item(_spelled(known), "online", one, share=share(_bytes(known)))


def distinct(items: Iterable[Item]) -> list[Item]:
    """Each trace and each dataset item once, in the order of their first appearance and as the last one has it.

    Items are the same by their ids, and without one by their content: a file that repeats a line brings no evidence.
    While an answer is still to come, no content is known.
    """
    found: dict[tuple[str, str], Item] = {}
    for item in items:
        nameless = item.id.startswith("#") and _own_id(item.source) is None and item.later is None
        known = json.dumps(item.source, sort_keys=True, default=str) if nameless else item.id
        found[item.context, known] = item
    return list(found.values())


def workflows_once(items: Iterable[Item]) -> list[Item]:
    """Returns the items, in which a workflow is judged once: of traces that it completes the first one has it, and the
    others have nothing to judge. So an agent can't name one good workflow in many traces of the same minutes.

    A workflow is its Proposal's namespace and name with its results: a name may be used again.
    """
    seen: set[str] = set()
    out = []
    for item in items:
        named, results = item.source.get("proposal"), item.source.get("proposal_results")
        if item.context == "online" and isinstance(named, Mapping) and results:
            known = [named.get("namespace"), named.get("name"), results]
            workflow = json.dumps(known, sort_keys=True, default=str)
            if workflow in seen:
                item = replace(item, missing=SHARED_WORKFLOW)
            seen.add(workflow)
        out.append(item)
    return out


def identity(one: Mapping[str, Any], number: int = 0) -> str:
    """Returns `metadata.id` (PC5 §5.3), else the item's own id, else its place."""
    return _own_id(one) or f"#{number + 1}"


def _own_id(one: Mapping[str, Any]) -> str | None:
    metadata = one.get("metadata")
    inner = metadata.get("id") if isinstance(metadata, Mapping) else None
    for known in (inner, one.get("id"), one.get("trace_id")):
        if isinstance(known, (str, int)) and not isinstance(known, bool) and known != "":
            return str(known)
    return None


def served(items: Iterable[Item], registered: Collection[str]) -> str | None:
    """Returns the registered vertical that all items agree on, else None. Its limits hold also where a request does not
    name it.

    Where there are traces, they decide; items of a dataset are the platform's as well as the vertical's.
    """
    named: dict[str, set[str]] = {}
    for item in items:
        named.setdefault(item.context, set()).add(vertical_named(item.source))
    only, *others = named.get("online") or named.get("offline") or {""}
    return only if not others and only in registered else None


def completed(one: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the item with null for what it may lack: references, and what the manifest's schema does not require. A
    judge that reads such a field reads nothing; one that reads an undeclared field can't be bound."""
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
    """Returns a trace's id as the stream's pools hold it."""
    try:
        return UUID(known).bytes
    except ValueError:
        return blake2b(known.encode(errors="replace"), digest_size=16).digest()


def _spelled(known: str) -> str:
    """Returns a UUID in its canonical spelling, so that a trace has one id in all spellings."""
    try:
        return str(UUID(known))
    except ValueError:
        return known
