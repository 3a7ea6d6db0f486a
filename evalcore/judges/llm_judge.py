"""The LLM judge: its prompt about an item, and the key under which the model's answer is kept. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from evalcore.framing import MOST_TOKENS, MOST_WINDOWS, is_cut, system_text, turn_json, turn_windows
from evalcore.judges.bindings import CONTEXTS, Context, bind
from evalcore.judges.evaluator import Evaluation, NoScore, Prompt, Task
from evalcore.judges.score_parsing import NOT_APPLICABLE, read
from evalcore.registry.judge import Judge
from schemas.judges import ScoreType


class LLMJudge:
    """Scores by a model's reply to the rule's prompt."""

    needs_model = True

    def evaluate(self, task: Task) -> Prompt:
        return render(task.judge, task.context, task.source, task.judged_tokens)

    def read(self, reply: str, judge: Judge) -> Evaluation:
        return read(reply, judge)


def render(judge: Judge, context: Context, source: Mapping[str, Any], judged_tokens: int = MOST_TOKENS) -> Prompt:
    """Returns the judge's question about an item: the same rubric in every context (PC5 AC-9).

    What is not shown to a safety judge would count as safe: it reads a long item in windows. Raises
    evalcore.judges.bindings.Unbound; NoScore for an item too long for that; ValueError for an unknown context.
    """
    if context not in CONTEXTS:
        raise ValueError(f"no context {context!r}; there are {', '.join(CONTEXTS)}")
    rule = judge.rule
    values = bind(judge, context, source)
    schema = answer_schema(
        judge.score_type, judge.score_range, tuple(rule.dimensions or ()), rule.takes_na, rule.score_of is None
    )
    return prompt_of(judge, rule.model, rule.prompt, values, schema, judged_tokens)


def prompt_of(
    judge: Judge, model: str, rubric: str, values: Mapping[str, str], schema: Mapping[str, Any], judged_tokens: int
) -> Prompt:
    """Returns the question with this rubric about these texts, by their names; of its windows the first, with the
    others in it. Raises NoScore for texts too long to be judged whole."""
    rule = judge.rule
    system = system_text(rule.task_introduction, rubric, tuple(values), tuple(schema["required"]))
    turns = turn_windows(values, judged_tokens) if judge.safety else [turn_json(values, judged_tokens)]
    if not turns:
        raise NoScore(f"its texts are longer than {MOST_WINDOWS} windows of {judged_tokens} tokens: not all is judged")
    first, *more = [
        Prompt(model, float(rule.temperature), system, turn, schema, values.get("output", ""), cut=is_cut(turn))
        for turn in turns
    ]
    return replace(first, read=sum(map(len, values.values())), more=tuple(more))


def cache_key(judge: Judge, prompt: Prompt, source: str) -> str:
    """Hash judge id and version, model, parameters, rendered prompt and output, without the nonce (contracts §5):
    machines whose secrets differ share answers. `source` is where the model is: a stand-in's answers are never taken
    for those of the model it stands for."""
    texts = (prompt.rubric, prompt.turn)
    parts = (judge.id, judge.version, source, prompt.model, repr(prompt.temperature), prompt.output, *texts)
    # The lengths, so that what one part ends with is never taken for the next one's beginning.
    whole = "".join([repr(list(map(len, parts))), *parts])
    return hashlib.sha256(whole.encode(errors="surrogatepass")).hexdigest()


def later_key(first: str, ask: int) -> str:
    """Returns the key of the second, third and any later answer to a question, whose first one has the key `first`."""
    return f"{first}#{ask}"


_KINDS = {ScoreType.INTEGER: "integer", ScoreType.FLOAT: "number", ScoreType.BOOLEAN: "boolean"}


@lru_cache(maxsize=256)
def answer_schema(
    score_type: ScoreType,
    scale: tuple[float, float],
    dimensions: tuple[str, ...],
    takes_na: bool = True,
    scored: bool = True,
) -> Mapping[str, Any]:
    """Returns the JSON Schema of an answer, in the part of the language that providers enforce. The scale is given in
    words, since not all providers know bounds; N/A is in it only where the judge's rule `takes_na`, a score only where
    the dimensions don't make it (`scored`). Reading is stricter still (evalcore.judges.score_parsing.read)."""
    low, high = scale
    scale_text = "true or false" if score_type is ScoreType.BOOLEAN else f"from {low:g} to {high:g}"
    kinds: list[dict[str, Any]] = [{"type": _KINDS[score_type]}]
    if takes_na:
        kinds.append({"type": "string", "enum": [NOT_APPLICABLE]})
        scale_text += f", or {NOT_APPLICABLE}"
    score = {"anyOf": kinds, "description": scale_text}
    # A model writes in this order: a score that comes first would be justified and not reasoned.
    properties: dict[str, Any] = {"reason": {"type": "string"}} | ({"score": score} if scored else {})
    if dimensions:
        properties["dimensions"] = closed(dict.fromkeys(dimensions, score))
    return closed(properties)


def closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON Schema of an object with exactly these properties."""
    return {
        "type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False
    }  # fmt: skip
