"""Has the candidate answer held-out items with a prompt, and the judges score them by the gates' one way."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evalcore.gates.evaluate import score_gate
from evalcore.gates.gate import prepare
from evalcore.gates.golden import Candidate, CandidateAnswer, GoldenSet, Pending, golden_sample
from evalcore.optimisation.definition import AgentDefinition
from evalcore.registry import disk
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Answer
from evalcore.scoring.calls import Spend
from evalcore.scoring.items import Failed, identity
from evalcore.scoring.runner import Scorer
from rampgate.console import Failure
from rampgate.settings import Settings
from rampgate.store.sealed import SealedStore
from rampgate.suite.candidates.configured import at_address
from rampgate.suite.generation import LARGEST_ANSWER, Generated, Generator, Wanted, configuration_of
from schemas.counting import counted
from schemas.judges import Milestone

NO_PROMPT = "the candidate does not say that it used the prompt (prompt_sha256): it takes none"


class TakesNoPrompt(Exception):
    """The candidate does not answer with the prompt that it is sent."""


@dataclass
class Forks:
    """Scores prompts on the same items, as the candidate at `url` answers them, which takes POST {input, metadata,
    prompt} and returns {output, prompt_sha256}. `asked` counts questions to it; what it answers is kept in `store`."""

    settings: Settings
    registry: Registry
    vertical: str
    agent: AgentDefinition
    items: Mapping[str, Mapping[str, Any]]
    url: str
    store: SealedStore
    scorer: Scorer
    spend: Spend
    asked: int = 0

    async def scored(self, prompt: str, *, again: bool = False) -> dict[tuple[str, str], Answer]:
        """What each judge says of each item, answered with the prompt; `again`: with other answers than before. Raises
        TakesNoPrompt, and Failure where the candidate answers no item."""
        beside = {"prompt": prompt}
        if self.agent.component is not None:
            beside["prompt_component"] = self.agent.component.id.name
        rows = list(self.items.values())
        wanted = [
            Wanted(identity(row, number), 2 if again else 1, {name: row.get(name) for name in ("input", "metadata")})
            for number, row in enumerate(rows)
        ]
        async with at_address(self.settings, self.url, beside) as candidate:
            generator = Generator(
                configuration_of(beside, {"url": self.url}), partial(self._with, prompt, candidate),
                self.store.kind("answers", LARGEST_ANSWER), self.store.kind("traces", 2 * LARGEST_ANSWER),
            )  # fmt: skip
            kept = await generator.kept(wanted)
            if None in kept:  # what fails at the first one fails everywhere
                at = kept.index(None)
                kept[at] = first = await generator.one(wanted[at], None)
                _require_prompt([first.answer])
            answers = {
                of[0].case_id: Pending(partial(_answer, generator, *of)) for of in zip(wanted, kept, strict=True)
            }
            golden = GoldenSet(rows, "held-out items")
            items, names = golden_sample(golden, answers, self.registry, self.vertical)
            gate = prepare(Milestone.PRE_MERGE, items, names, self.registry, self.vertical)
            found = await score_gate(self.scorer, gate, disk.today(), spend=self.spend)
        failed = [one.found for one in answers.values() if isinstance(one.found, Failed)]
        if failed and len(failed) == len(answers):
            raise Failure(f"--candidate: it answers none of {counted(len(failed), 'item')}: {failed[0].why}")
        _require_prompt(failed)
        pairs = zip(found.assignments, found.judgements, strict=True)
        return {(judge.id, item.id): said.answer for (judge, item), said in pairs}

    async def _with(self, prompt: str, candidate: Candidate, item: Mapping[str, Any]) -> CandidateAnswer:
        """An answer counts only where it says by the prompt's SHA-256 that it was made with it: an endpoint that takes
        no prompt would answer the same whatever is proposed."""
        self.asked += 1
        answer = await candidate(item)
        if isinstance(answer, Failed):
            return answer
        if answer.get("prompt_sha256") != hashlib.sha256(prompt.encode()).hexdigest():
            return Failed(NO_PROMPT)
        return {name: value for name, value in answer.items() if name != "prompt_sha256"}


async def _answer(generator: Generator, wanted: Wanted, kept: Generated | None) -> CandidateAnswer:
    return (await generator.one(wanted, kept)).answer


def _require_prompt(answers: Sequence[CandidateAnswer | None]) -> None:
    if any(isinstance(one, Failed) and one.why == NO_PROMPT for one in answers):
        raise TakesNoPrompt(NO_PROMPT)
