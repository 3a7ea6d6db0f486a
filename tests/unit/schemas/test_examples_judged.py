"""The published example of a trace can be judged as it stands: who makes traces by it has them scored."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.judges.bindings import Unbound, bind
from evalcore.registry.disk import read_tree, today
from evalcore.registry.judge import Judge
from evalcore.registry.registry import build
from evalcore.scoring.items import trace_item
from evalcore.validation import checked
from schemas.publish.examples import EXAMPLES
from tests.root import ROOT

WHOLE = [one for one in EXAMPLES["trace"] if "output" in one]
"""The others are read from Opik."""


def shipped() -> list[Judge]:
    files, _ = checked(read_tree(ROOT / "configs"), today())
    registry = build(files)
    return [judge for vertical in (None, *registry.verticals) for judge in registry.all(vertical)]


@pytest.mark.parametrize("example", WHOLE, ids=range(len(WHOLE)))
def test_every_shipped_judge_can_score_the_example_of_a_trace(example: Any) -> None:
    judges, item = shipped(), trace_item(example)
    assert len(judges) > 10
    wrong = {}
    for judge in judges:
        try:
            bound = bind(judge, item.context, item.source)
        except Unbound as error:
            wrong[judge.id] = str(error)
        else:
            assert example["output"]["messages"][-1]["content"][-1]["text"] in bound["output"], judge.id
    assert (wrong, item.missing) == ({}, "")
