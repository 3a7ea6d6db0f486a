"""Compares the dataset of pre_merge with the manifest, and pairs its items with a candidate's answers and with the
judges that score them (PC5 §5.3, §5.5). Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from evalcore.registry.registry import Registry, UnknownCategory
from evalcore.remediation.sealing import ADDED
from evalcore.scoring.items import Failed, Item, category_of, dataset_item, identity, served
from schemas.counting import counted
from schemas.judges import Milestone
from schemas.manifests import Dataset
from schemas.wire_forms import TraceDetails

FIELDS_OF_ITEMS: Final = frozenset({
    "id", "input", "expected_output", "expected_proposal_status", "reference", "metadata", "dataset_item",
})  # fmt: skip
"""Fields of an item that no answer of a candidate replaces."""
OF_ANSWERS: Final = (
    "output", *TraceDetails.__annotations__, "requested_calls", "prompt", "retrieval", "trace", "spans",
    "spans_dropped",
)  # fmt: skip
"""Fields that only an answer has, in a trace's form, with what else says how the agent came to it; those of the dataset
are dropped. A stored trace has them, and judges may read them."""
TRACEPARENT: Final = "traceparent"
UNANSWERED: Final = "the candidate gave no output for it"


class Evidenced(dict[str, Any]):
    """An answer in which what the cluster says of a workflow is ours. Of any other these fields are dropped, so that no
    candidate writes its own evidence (`evalcore.remediation.sealing`)."""


CandidateAnswer = Mapping[str, Any] | Failed
"""The fields of an answer: `output`, those of OF_ANSWERS that it has, and others that judges read."""
Candidate = Callable[[Mapping[str, Any]], Awaitable[CandidateAnswer]]
"""The port to a candidate: returns its answer to an item, or why there is none, and raises nothing but CancelledError.
"""


def question(item: Mapping[str, Any], beside: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a candidate is asked of an item, never what was expected of it. `beside` goes with every item, and
    its `traceparent` (W3C) where the caller takes the candidate's spans."""
    traced = {TRACEPARENT: item[TRACEPARENT]} if TRACEPARENT in item else {}
    return {"input": item.get("input"), "metadata": item.get("metadata") or {}, **beside, **traced}


@dataclass
class Pending:
    """An answer that is still to come. `ask` waits for it, once; `found` holds it then."""

    ask: Callable[[], Awaitable[CandidateAnswer]]
    found: CandidateAnswer | None = None

    async def answer(self) -> CandidateAnswer:
        self.found = await self.ask()
        return self.found


def pending(items: Sequence[Mapping[str, Any]], candidate: Candidate) -> dict[str, CandidateAnswer | Pending]:
    """Returns the candidate's answers by the items' ids; each is asked for when it is waited for."""
    return {identity(item, number): Pending(partial(candidate, item)) for number, item in enumerate(items)}


def with_answer(item_of: Callable[[CandidateAnswer], Item], answer: CandidateAnswer | Pending) -> Item:
    """Returns the item that is made of the answer: now, or `later` where that is still to come."""
    if not isinstance(answer, Pending):
        return item_of(answer)

    async def later() -> Item:
        return item_of(await answer.answer())

    return replace(item_of(Failed("not answered yet")), later=later)


@dataclass(frozen=True)
class GoldenSet:
    """A dataset. `name` and `version` are None for a file, which does not state them; `latest` is Opik's newest
    version."""

    items: Sequence[Mapping[str, Any]]
    source: str
    name: str | None = None
    version: int | None = None
    latest: int | None = None

    @property
    def categories(self) -> Counter[str]:
        return Counter(category_of(item) for item in self.items)


def mismatches(golden: GoldenSet, registry: Registry, vertical: str | None = None) -> Iterator[str]:
    """Yields each difference between the dataset and the one that the manifest names for the vertical. Each category of
    the dataset's owner has items: the platform's in the platform's set, a vertical's own in its own."""
    owner = registry.owner(vertical)
    yield from unlike(golden, registry.dataset(owner), field_of(owner))
    by_category = golden.categories
    for name, declared in sorted(registry.category_files.items()):
        if declared.vertical == owner and not by_category[name]:
            yield f"category {name!r} is empty: no item of the dataset is of it"
    for name, count in sorted(by_category.items()):
        if name not in registry.category_files:
            of = f"of category {name[:80]!r}, which the manifest does not have" if name else "without metadata.category"
            yield f"{counted(count, 'item')} {of}"


def field_of(owner: str | None) -> str:
    """Returns where the manifest names the golden set of its owner."""
    return f"datasets.{owner}" if owner is not None else "dataset"


def unlike(found: GoldenSet, wanted: Dataset, field: str = "dataset") -> Iterator[str]:
    """Yields each difference in name, version and size from the dataset that `field` of the manifest names."""
    if found.name is not None and found.name != wanted.name:
        yield f"the dataset is {found.name!r}, the manifest's {field}.name is {wanted.name!r}"
    if found.version is not None and found.version != wanted.version:
        yield f"the dataset's version is {found.version}, the manifest's {field}.version is {wanted.version}"
    if len(found.items) != wanted.items:
        yield f"{found.source} has {counted(len(found.items), 'item')}, the manifest's {field}.items is {wanted.items}"


def vertical_of(golden: GoldenSet, registry: Registry) -> str | None:
    """Returns the vertical that the dataset's items agree on, whose limits hold where a caller names none."""
    return served((Item("", "offline", row) for row in golden.items), registry.verticals)


def golden_sample(
    golden: GoldenSet, answers: Mapping[str, CandidateAnswer | Pending], registry: Registry, vertical: str | None
) -> tuple[list[Item], list[str]]:
    """Returns the dataset's items with the candidate's answers, and the names that decide.

    An item's judges are its category's, the global ones and every safety judge (PC5 AC-3); sampling rates do not apply
    (FR-11). A dimension with a limit of its own decides beside its judge, since no request lists names before a merge.
    """
    vertical = vertical or vertical_of(golden, registry)
    items = [
        with_answer(
            partial(answered, row, registry=registry, vertical=vertical, number=number),
            answers.get(identity(row, number), Failed(UNANSWERED)),
        )
        for number, row in enumerate(golden.items)
    ]
    firing = set[str]().union(*(firing_on(row, registry, vertical) or () for row in golden.items))
    judges = [judge for judge in registry.all(vertical) if judge.safety or judge.id in firing]
    dimensions = [
        f"{judge.id}.{name}"
        for judge in judges
        for name, limits in judge.dimensions.items()
        if Milestone.PRE_MERGE in limits.own
    ]
    return items, [*(judge.id for judge in judges), *dimensions]


def firing_on(row: Mapping[str, Any], registry: Registry, vertical: str | None) -> frozenset[str] | None:
    """Returns the ids of the judges of an item's category; None for a category that the manifest does not have."""
    try:
        return frozenset(judge.id for judge in registry.category(category_of(row), vertical))
    except UnknownCategory:
        return None


def answered(
    row: Mapping[str, Any], answer: CandidateAnswer, registry: Registry, vertical: str | None, number: int = 0
) -> Item:
    """Returns a dataset's item with the candidate's answer and the judges that fire on it. The item may name the judges
    of its category that fit it (`metadata.applicable_metrics`). Only safety judges score an item of an unknown
    category."""
    item = with_output(row, answer, registry.manifest.get("schema", {}), number)
    return replace(item, judges=judges_of(row, registry, vertical) or frozenset())


def judges_of(row: Mapping[str, Any], registry: Registry, vertical: str | None) -> frozenset[str] | None:
    """Returns the ids of the judges that score an item of a dataset: those of its category, of them only what fits it
    where it says so (`metadata.applicable_metrics`). None for an item of no known category."""
    firing, fitting = firing_on(row, registry, vertical), _applicable(row, registry)
    return firing & fitting if firing is not None and fitting else firing


def with_output(row: Mapping[str, Any], answer: CandidateAnswer, schema: Mapping[str, Any], number: int = 0) -> Item:
    """Returns an item of a dataset with the candidate's answer, none of whose fields replaces the item's own; without
    what an answer says of a workflow on the cluster, unless it is `Evidenced`."""
    own = {name: value for name, value in row.items() if name not in OF_ANSWERS and name not in ADDED}
    if isinstance(answer, Failed):
        return dataset_item(own, schema, number, answer.why)
    dropped = FIELDS_OF_ITEMS if isinstance(answer, Evidenced) else FIELDS_OF_ITEMS | ADDED
    given = {name: value for name, value in answer.items() if name not in dropped}
    return dataset_item({**own, **given}, schema, number, "the candidate's answer has no output")


def _applicable(row: Mapping[str, Any], registry: Registry) -> set[str]:
    """Returns the ids of the judges that the item names as applicable; none for an item that names none."""
    metadata = row.get("metadata")
    named = metadata.get("applicable_metrics") if isinstance(metadata, Mapping) else None
    if not isinstance(named, Sequence) or isinstance(named, str):
        return set()
    known = {str(name).replace("-", "_").lower() for name in named}
    return known & set(registry.rules())
