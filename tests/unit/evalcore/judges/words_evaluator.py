"""A new kind of evaluator as a package brings it: one file, one registration. It counts an output's words."""

from __future__ import annotations

from evalcore.judges import kinds
from evalcore.judges.bindings import resolve
from evalcore.judges.evaluator import Evaluation, NoScore, Task
from evalcore.registry.judge import Judge


class Words:
    """`model: words:LIMIT` is true of an output of at most so many words."""

    needs_model = False

    def evaluate(self, task: Task) -> Evaluation:
        limit = int(task.judge.rule.model.partition(":")[2])
        output = resolve("output", task.source)
        if not isinstance(output, str):
            raise NoScore("the output is no text")
        count = len(output.split())
        return Evaluation(float(count <= limit), f"{count} words")

    def read(self, reply: str, judge: Judge) -> Evaluation:
        raise NoScore("no model is asked")


kinds.register("words", Words())
