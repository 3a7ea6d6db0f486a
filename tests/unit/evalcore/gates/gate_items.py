"""Items of a gate, and a model that scores them by what it is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from evalcore.judges.evaluator import Prompt
from evalcore.scoring.calls import Reply


def good(asked: Prompt) -> Any:
    """The top of whatever scale is asked for."""
    kinds = [one["type"] for one in asked.schema["properties"]["score"]["anyOf"]]
    return True if "boolean" in kinds else 5 if "integer" in kinds else 1.0


class Model:
    """`says`: what it scores. `asked`: every question it got."""

    def source(self, model: str) -> str:
        return "test"

    def __init__(self, says: Callable[[Prompt], Any] = good) -> None:
        self.says, self.asked = says, list[Prompt]()

    async def complete(self, asked: Prompt) -> Reply:
        self.asked.append(asked)
        found = self.says(asked)
        if isinstance(found, Exception):
            raise found
        return Reply(json.dumps({"reason": "r", "score": found}))


def items(count: int = 25, **more: Any) -> list[dict[str, Any]]:
    return [
        {"input": f"how? {n}", "output": f"so {n}", "expected_output": "WRITTEN BY HAND", "metadata": {"id": f"i{n}"}}
        | more
        for n in range(count)
    ]
