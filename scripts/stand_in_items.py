"""Writes made-up items of the manifest's dataset and answers to them: `scripts/stand_in_items.py FOLDER`.

They are as many as the manifest says, spread over its categories, and say nothing of an agent: a gate runs on them
where a repository has judges alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from evalcore.registry.disk import default_root
from evalcore.reloading import ReloadingRegistry


def item(number: int, category: str) -> dict[str, Any]:
    said = f"Where do I see what I earned with receipt {number}?"
    return {
        "input": said,
        "expected_output": "In your activity.",
        "metadata": {"id": f"stand-in-{number}", "category": category, "expected_tools": [], "difficulty": "easy"},
    }


def main(folder: Path) -> None:
    registry = ReloadingRegistry(default_root(), ttl=None).current()
    categories = sorted(name for name, one in registry.category_files.items() if one.vertical is None)
    items = [item(n, categories[n % len(categories)]) for n in range(registry.dataset().items)]
    answers = [
        {"id": one["metadata"]["id"], "output": "You see it in your activity.", "tool_calls": []} for one in items
    ]
    for name, lines in (("items", items), ("outputs", answers)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
