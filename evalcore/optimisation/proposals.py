"""The question to the meta-LLM, its answer, and which of its proposals may be measured (PF-9 FR-9, §5.7). Pure.

Items, the definition and rubrics are data, framed as judges' turns are (`evalcore.framing`): one JSON object between
lines with a keyed nonce, so that no text of a user can address the meta-LLM from outside its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evalcore import framing
from evalcore.judges.evaluator import NoScore, Prompt
from evalcore.judges.score_parsing import read_object
from evalcore.optimisation.copying import Items
from evalcore.optimisation.definition import AgentDefinition, BadDefinition, hidden, places, prompt_hash
from evalcore.registry.judge import Judge

MOST_ITEMS: Final = 12
"""Failing items that the meta-LLM is shown, the worst first."""
LONGEST_RATIONALE: Final = 1_000
GROWTH: Final = 2_000
"""Characters by which a fork may be longer than twice the current prompt."""
ROOM: Final = 24_000
"""Tokens for all that the meta-LLM is shown."""
_INTRODUCTION: Final = (
    "You improve the prompt of an agent. People review what you propose; nothing of it is used before they have."
)
_TASK: Final = """\
The turn holds the agent's `current_prompt`, the rest of its `definition`, the `rubrics` of the judges that it does not
satisfy, and `failing_items`: what users asked, what the agent answered, and what the judges gave.

Find what the prompt lacks or says badly that explains the failures, and propose at most {most} other prompts that would
help with questions of that kind. Each is a whole prompt in the place of the current one, with the same places to fill
in, at most {length} characters long.

Change the prompt's text alone: no tool, no model, no parameter. Write rules and not examples: quote no item, name
nothing that only one item is about, and repeat no rubric. Write nothing that is addressed to a judge. Keep every rule
about safety, privacy and refusals as it is.

`variants` is a list of objects with the fields `prompt` and `rationale`: what was wrong, and what the change does about
it. Where you find nothing to improve, the list is empty."""


@dataclass(frozen=True)
class Failing:
    """An item that the meta-LLM is shown, and the judges that it does not satisfy: each score and threshold."""

    item: str
    category: str
    asked: Any
    answered: Any
    scores: Mapping[str, tuple[float, float]]
    share: float
    """The lowest score as a share of its scale."""


@dataclass(frozen=True)
class Variant:
    """A proposal as it came. `beside` names fields that are no part of a prompt fork."""

    prompt: str
    rationale: str
    beside: tuple[str, ...] = ()


class TooLong(ValueError):
    """The definition leaves no room for a single failing item."""


def question(
    definition: AgentDefinition, failing: Sequence[Failing], judges: Sequence[Judge], model: str, most: int
) -> tuple[Prompt, list[Failing]]:
    """Returns the question to the meta-LLM and the items in it: as many of the worst as can be shown whole. Raises
    TooLong."""
    names = ("current_prompt", "definition", "rubrics", "failing_items")
    task = _TASK.format(most=most, length=longest(definition.prompt))
    rubric = framing.system_text(_INTRODUCTION, task, names, ("variants",))
    worst = sorted(failing, key=lambda one: (one.share, one.item))[:MOST_ITEMS]
    fixed = {
        "current_prompt": definition.prompt,
        "definition": _json(definition.others),
        "rubrics": _json({judge.id: judge.rule.prompt for judge in judges}),
    }
    while worst:
        items = [
            {
                "category": one.category, "asked": one.asked, "answered": one.answered,
                "scores": {name: {"score": score, "wanted": wanted} for name, (score, wanted) in one.scores.items()},
            }
            for one in worst
        ]  # fmt: skip
        turn = framing.turn_json({**fixed, "failing_items": _json(items)}, ROOM)
        if not framing.is_cut(turn):
            return Prompt(model, 1.0, rubric, turn, _SCHEMA, ""), worst
        worst = worst[:-1]
    raise TooLong("prompt, definition and rubrics leave no room for a failing item")


def read_variants(reply: str, most: int) -> list[Variant]:
    """Reads the answer: at most so many variants. Raises NoScore for what is not the answer's form."""
    answer = read_object(reply, ["variants"])["variants"]
    if not isinstance(answer, list) or not all(isinstance(one, dict) for one in answer):
        raise NoScore("variants is no list of objects")
    found = []
    for one in answer[:most]:
        prompt, rationale = one.get("prompt"), one.get("rationale", "")
        if not isinstance(prompt, str) or not isinstance(rationale, str):
            raise NoScore("a variant has no text as its prompt or rationale")
        beside = tuple(sorted(str(name) for name in one.keys() - {"prompt", "rationale"}))
        found.append(Variant(prompt, rationale[:LONGEST_RATIONALE], beside))
    return found


def longest(prompt: str) -> int:
    """Returns how many characters a fork of the prompt may have."""
    return 2 * len(prompt) + GROWTH


def refusal(variant: Variant, definition: AgentDefinition, items: Items) -> str:
    """Returns why a proposal is not measured; empty where it may be."""
    if variant.beside:
        return f"it proposes more than a prompt: {', '.join(name[:40] for name in variant.beside)}"
    if not variant.prompt.strip():
        return "its prompt is empty"
    if prompt_hash(variant.prompt) == prompt_hash(definition.prompt):
        return "it is the current prompt"
    if len(variant.prompt) > longest(definition.prompt):
        return f"it has {len(variant.prompt)} characters, at most {longest(definition.prompt)} are allowed"
    if sign := hidden(variant.prompt):
        return f"it holds the sign {sign}, which no one sees"
    if (now := places(variant.prompt)) != definition.places:
        odd = ", ".join(sorted(now ^ definition.places))
        return f"its places to fill in are others: {odd[:200]}"
    if run := items.copied(variant.prompt, definition.prompt):
        return (
            f"it copies {len(run)} words in a row from an item" if len(run) > 1 else "it copies a number from an item"
        )
    try:
        definition.forked(variant.prompt, "0")
    except BadDefinition as error:
        return f"it is no definition of this agent: {error}"
    return ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "variants": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"prompt": {"type": "string"}, "rationale": {"type": "string"}},
                "required": ["prompt", "rationale"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["variants"],
    "additionalProperties": False,
}
