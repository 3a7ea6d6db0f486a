"""An override is what a reviewer of the description sees: a block as such, and a ticked box below it (PC5 §5.5)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from evalcore.gates.overrides import AGREED, Block, Ticked, accepted, plan, seen
from schemas.judges import Milestone
from tests.root import ROOT
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.rampgate.ci_gate.github_api import PULL

TODAY = date(2026, 11, 21)
REGISTRY = built()
TICK = f"- [x] {AGREED}"
MORE = "justification: known\nexpires: 2026-12-01\n"
SHIFT = f"```accept-baseline-shift\njudges: [brevity]\n{MORE}```"
SKIP = f"```eval-skip-justification\nmilestones: [pre_ramp]\n{MORE}```"
TEMPLATE = (ROOT / ".github" / "pull_request_template.md").read_text()


def held(text: str) -> tuple[bool, bool]:
    """Whether the shift holds that the text may have, and whether the skip does."""
    pull = replace(PULL, description=text, labels=("eval-skip-pre-ramp",))
    shifts, _ = accepted(pull, REGISTRY, TODAY)
    skips = plan(["configs/rules/x.yaml"], today=TODAY, pull=pull).skipped
    return shifts != [], [one["milestone"] for one in skips] == [Milestone.PRE_RAMP]


SEEN = [
    f"{SKIP}\n\n{SHIFT}\n\n{TICK}\n",
    f"{SKIP}\n{SHIFT}\n{TICK}",
    f"<!-- why --> \n{SKIP}\n<!-- two\n\nlines -->\n{SHIFT}\n\n<!-->\n\n{TICK}\n",
    f"{SKIP}\n\n{SHIFT}\n\nWho agrees:\n\n* done\n  * [X] {AGREED} <!-- or not -->\n\nThanks.",
    f"```yaml\na: '<!--'\n```\n{SKIP}\n\n{SHIFT}\n\nNo `<!--` here.\n\n{TICK}\n- [ ] something else",
    f"~~~eval-skip-justification\nmilestones: [pre_ramp]\n{MORE}~~~\n\n`{SHIFT.replace('```', '````')[1:]}\n\n{TICK}",
]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("text", SEEN)
def test_what_a_reader_sees_holds(text: str, end: str) -> None:
    assert held(text.replace("\n", end)) == (True, True)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_template_holds_once_filled_in_and_ticked(end: str) -> None:
    fields = "justification:\nexpires:\n"
    filled = TEMPLATE.replace(f"milestones: []\n{fields}", f"milestones: [pre_ramp]\n{MORE}")
    filled = filled.replace(f"judges: []\n{fields}", f"judges: [brevity]\n{MORE}")
    assert held(filled.replace("\n", end)) == (False, False)
    assert held(filled.replace("- [ ] The reviewer", "- [x] The reviewer").replace("\n", end)) == (True, True)


BLOCKS = f"{SKIP}\n\n{SHIFT}\n\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{BLOCKS}<!--\n{TICK}\n-->\n",
        f"{BLOCKS}<!-- never closed\n\n{TICK}\n",
        f"{BLOCKS}> <!--\n\n{TICK}\n\n-->",
        f"{BLOCKS}Note: <!-- a\n\n{TICK}\n\n-->\n",
        f"{BLOCKS}```\n{TICK}\n```\n",
        f"{BLOCKS}~~~\n{TICK}\n~~~\n",
        f"{BLOCKS}~~~~\n```\n~~~\n{TICK}\n~~~~\n",
        f"{BLOCKS}- a\n\n  ```\n  {TICK}\n  ```\n",
        f"{BLOCKS}text\n2. a\n   ```\n{TICK}\n   ```\n",
        f"{BLOCKS}* * *\n  ```\n{TICK}\n  ```\n",
        f"{BLOCKS}text\n\n    {TICK}\n",
        f"{BLOCKS}> {TICK}\n",
        f"{BLOCKS}<?\n{TICK}\n?>\n",
        f"{BLOCKS}<div>\n{TICK}\n</div>\n",
        f"{BLOCKS}-[x] {AGREED}\n",
        f"{BLOCKS}- \\[x] {AGREED}\n",
        f"{BLOCKS}- [x] `{AGREED}`\n",
        f"{BLOCKS}- [ ] {AGREED}\n",
        f"{BLOCKS}- [x] {AGREED}, but not this one\n",
        f"{TICK}\n\n{BLOCKS}",
        f"<!--\n{BLOCKS}-->\n\n{TICK}\n",
        f"<!-- never closed\n\n{BLOCKS}{TICK}\n",
        f"~~~\n{BLOCKS}~~~\n\n{TICK}\n",
        f"````\n{BLOCKS}````\n\n{TICK}\n",
        f"<!-- ``` -->\n\n~~~\n{BLOCKS}\n~~~\n{TICK}\n",
        f"{BLOCKS}{SHIFT}\n\n{SKIP}\n\n{TICK}\n",
        f"{BLOCKS[:-5]}\n\n{TICK}\n".replace(SKIP, ""),
    ],
)
def test_what_no_reader_sees_as_an_override_or_a_tick_is_none(text: str) -> None:
    assert held(text) == held(text.replace("\n", "\r\n")) == (False, False)


def test_a_tick_is_for_the_overrides_above_it() -> None:
    assert held(f"{SKIP}\n\n{TICK}\n\n{SHIFT}\n") == (False, True)
    assert held(f"{SHIFT}\n\n{TICK}\n\n{SKIP}\n") == (True, False)


def test_a_hidden_example_is_no_second_block() -> None:
    example = SHIFT.replace("brevity", "helpfulness")
    text = f"<!-- such as\n{example}\n-->\n\n~~~\n{example}\n~~~\n\n{BLOCKS}{TICK}"
    assert held(text) == (True, True)
    (shift,), _ = accepted(replace(PULL, description=text), REGISTRY, TODAY)
    assert shift["judges"] == ("brevity",)


def test_blocks_and_ticks_stand_in_their_order() -> None:
    text = "- [x] one\n\n```a b\nc\n```\n\n- [ ] two\n- [X] *three* <!-- x -->\n  more\n"
    assert seen(text) == [Ticked("one"), Block("a b", "c\n"), Ticked("three")]
    assert seen("") == []
