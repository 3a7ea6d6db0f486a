"""What a query's three layers found (AgentCI 2.0, Step 2). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

FieldPath = tuple[str | int, ...]


class Status(StrEnum):
    """`skip`: nothing is asserted. `infra`: it can't be decided, since what it reads is not there."""

    PASS = "pass"  # noqa: S105 - a word of the document
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"
    INFRA = "infra"


@dataclass(frozen=True)
class Message:
    """What was found, and of which assertion: `field` is its path below the query, `("path", "max_tool_calls")`.
    `status` is what it makes of its layer."""

    words: str
    field: FieldPath = ()
    status: Status = Status.WARN


@dataclass(frozen=True)
class LayerResult:
    """A layer's status with what it found. `details` is JSON: figures by the document's names."""

    status: Status
    details: Mapping[str, Any] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()


WORST_FIRST: Final = (Status.FAIL, Status.INFRA, Status.WARN, Status.PASS, Status.SKIP)


def worst(found: Iterable[Status]) -> Status:
    """Returns what several statuses come to; SKIP without any. A failure counts more than what can't be decided."""
    return min(found, key=WORST_FIRST.index, default=Status.SKIP)


@dataclass
class Findings:
    """Gathers what the assertions of path or cost find. `blocking` are the names of those that block, where the others
    warn."""

    layer: str
    blocking: Collection[str] = ()
    details: dict[str, Any] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)

    def wrong(self, name: str, words: str, *, fails: bool = False) -> None:
        """Note that an assertion does not hold."""
        status = Status.FAIL if fails or name in self.blocking else Status.WARN
        self.messages.append(Message(words, (self.layer, name), status))

    def unknown(self, why: str, names: Collection[str], *, undecided: bool = False) -> None:
        """Note once why some assertions can't be checked. That warns, unless one of them has to hold."""
        if names:
            status = Status.INFRA if undecided or any(name in self.blocking for name in names) else Status.WARN
            words = f"{why}: {', '.join(names)} can't be checked"
            self.messages.append(Message(words, (self.layer, next(iter(names))), status))

    def layer_result(self, well: str) -> LayerResult:
        """Returns the layer; `well` is its one message where nothing was noted."""
        said = tuple(self.messages) or (Message(well, (), Status.PASS),)
        return LayerResult(worst(one.status for one in said), self.details, said)


@dataclass(frozen=True)
class QueryResult:
    """One query's layers. `infra` says why the agent gave no answer, where that may pass on another try."""

    id: str
    query: str
    correctness: LayerResult
    path: LayerResult
    cost: LayerResult
    infra: str = ""

    @property
    def layers(self) -> dict[str, LayerResult]:
        return {"correctness": self.correctness, "path": self.path, "cost": self.cost}

    @property
    def hard_fail(self) -> bool:
        """Says whether the query blocks: a layer failed."""
        return any(one.status is Status.FAIL for one in self.layers.values())

    @property
    def unresolved(self) -> bool:
        """Says whether it can't be told if the query passes."""
        return not self.hard_fail and (
            bool(self.infra) or any(one.status is Status.INFRA for one in self.layers.values())
        )

    @property
    def warns(self) -> bool:
        return any(one.status is Status.WARN for one in self.layers.values())
