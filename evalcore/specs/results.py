"""What a query's three layers found (AgentCI 2.0, Step 2). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

FieldPath = tuple[str | int, ...]


class Status(StrEnum):
    """`skip`: nothing is asserted. `infra`: it can't be decided, since what it reads is not there."""

    PASS = "pass"  # noqa: S105
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"
    INFRA = "infra"


@dataclass(frozen=True)
class Message:
    """What is wrong, and with which assertion: `field` is its path below the query, `("path", "max_tool_calls")`."""

    words: str
    field: FieldPath = ()


@dataclass(frozen=True)
class LayerResult:
    """A layer's status with what it found. `details` is JSON: figures by the document's names."""

    status: Status
    details: Mapping[str, Any] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()


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
