"""A table in memory that a sweep reads, and a producer that takes its time."""

from __future__ import annotations

import asyncio
from typing import Any

from streams.dynamodb.client import Busy
from tests.unit.agents.builders import NOW


class Table:
    """Segments of pages of items; `busy` calls fail first."""

    table = "thumbs"

    def __init__(self, segments: list[list[list[str]]], busy: int = 0, vertical: str = "shopping") -> None:
        self.segments, self.busy, self.vertical = segments, busy, vertical

    async def call(self, ask: Any) -> Any:
        await asyncio.sleep(0)
        if self.busy:
            self.busy -= 1
            raise Busy("ThrottlingException")
        return ask(self, None)

    def scan(self, **options: Any) -> dict[str, Any]:
        at = int(options.get("ExclusiveStartKey", {}).get("at", 0))
        pages = self.segments[options["Segment"]]
        answer: dict[str, Any] = {"Items": [item(name, self.vertical) for name in pages[at]]}
        if at + 1 < len(pages):
            answer["LastEvaluatedKey"] = {"at": at + 1}
        return answer


def item(name: str, vertical: str) -> dict[str, Any]:
    created = {"N": str(NOW / 1000)}
    return {
        "MessageId": {"S": name},
        "ResponseId": {"S": f"r-{name}"},
        "Thumbs": {"S": "up"},
        "CreatedAt": created,
        "Vertical": {"S": vertical},
    }


class Slow:
    async def send(self, messages: list[Any]) -> list[tuple[str, int, int]]:
        await asyncio.sleep(0.001 * len(messages))
        return [("rampgate.thumbs", 0, number) for number in range(len(messages))]
