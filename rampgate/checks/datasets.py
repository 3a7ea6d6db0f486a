"""The items on which a check asks judges: a dataset file's, with outputs of an agent, or made-up turns."""

from __future__ import annotations

from pathlib import Path

from evalcore.canaries.turns import turns
from evalcore.registry.registry import Registry
from evalcore.scoring.items import Item, dataset_item
from rampgate.ci_gate.inputs import read_dataset
from rampgate.console import Failure, plain


def items_to_judge(dataset: Path | None, registry: Registry, seed: str, many: int) -> list[Item]:
    """Returns the file's items; without one, as many turns made from the seed. Raises Failure, which names the file,
    where it is bad or empty or an item has no output."""
    if dataset is None:
        return turns(seed, many)
    golden = read_dataset(dataset)
    schema = registry.manifest.get("schema", {})
    found = [dataset_item(one, schema, number) for number, one in enumerate(golden.items)]
    if without := [item.id for item in found if item.missing]:
        raise Failure(
            f"{dataset}: {plain(without[0], 80)} has no output: {len(without)} items lack one; add the agent's to each"
        )
    if not found:
        raise Failure(f"{dataset}: has no items")
    return found
