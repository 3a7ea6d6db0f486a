"""The stand-in for a judge's model in this process: sound, noisy or gullible. It makes each prompt once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import blake2b

from evalcore.canaries.check import Asking
from evalcore.judges.evaluator import NoScore, Prompt, Task
from evalcore.judges.kinds import evaluator_of
from evalcore.scoring.answers import Judgement, judgement
from evalcore.scoring.calls import CallFailed, Failure
from evalcore.scoring.runner import evaluate
from rampgate.local.model import judging
from rampgate.local.model.gullible import Gullible, obeyed

TURN = "Rate the turn.\n<user_input>\n{{input}}\n</user_input>\n<agent_output>\n{{output}}\n</agent_output>\n"
Noise = Callable[[Task, float, int], float]
"""Moves a score, by the task and how often it was asked before."""


class StandIn:
    """Keeps prompts and sound answers, so that many modes cost little more than one."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Prompt, dict[str, object]]] = {}
        self._asked: dict[tuple[str, str], int] = {}

    def asking(self, gullible: Gullible | None = None, noise: Noise | None = None) -> Asking:
        async def ask(tasks: Sequence[Task]) -> list[Judgement]:
            return [self._judged(task, gullible, noise) for task in tasks]

        return ask

    def _judged(self, task: Task, gullible: Gullible | None, noise: Noise | None) -> Judgement:
        prompt, answer = self._sound(task)
        form = {"json_schema": {"schema": prompt.schema}}
        reply = obeyed(gullible, prompt.messages, form, answer) if gullible is not None else None
        if reply is None and noise is not None:
            key = task.judge.id, task.item
            self._asked[key] = self._asked.get(key, -1) + 1
            answer = {**answer, "score": noise(task, float(str(answer["score"])), self._asked[key])}
        try:
            found = evaluator_of(task.judge).read(reply or json.dumps(answer), task.judge)
        except NoScore as error:
            return judgement(task, CallFailed(Failure.SLIP, str(error)))
        return judgement(task, found)

    def _sound(self, task: Task) -> tuple[Prompt, dict[str, object]]:
        key = task.judge.id, task.item
        if key not in self._known:
            prompt = evaluate(task)
            assert isinstance(prompt, Prompt)
            self._known[key] = prompt, judging.answer(prompt.messages, {"json_schema": {"schema": prompt.schema}})
        return self._known[key]


def chance(*parts: object) -> float:
    """A number from 0 to 1 that depends on the parts alone."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8).digest(), "big") / 2**64
