"""Has the candidate answer held-out items with a prompt, and the judges score them by the gates' one way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalcore.gates.evaluate import score_gate
from evalcore.gates.gate import prepare
from evalcore.gates.golden import Failed, GoldenSet, Pending, golden_sample
from evalcore.optimisation.definition import AgentDefinition
from evalcore.registry import disk
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Answer
from evalcore.scoring.calls import Spend
from evalcore.scoring.runner import Scorer
from rampgate.console import Failure
from rampgate.optimisation.kept import NO_PROMPT, ForkAnswers, Kept
from schemas.counting import counted
from schemas.judges import Milestone
from streams.gates.candidate import CandidateLimits, asking_candidate


class TakesNoPrompt(Exception):
    """The candidate does not answer with the prompt that it is sent."""


@dataclass(frozen=True)
class Candidate:
    """The endpoint that takes POST {input, metadata, prompt} and returns {output, prompt_sha256}."""

    url: str
    key: str | None = None
    limits: CandidateLimits = field(default_factory=CandidateLimits)


@dataclass
class Forks:
    """Scores prompts on the same items. `asked` counts questions to the candidate."""

    registry: Registry
    vertical: str
    agent: AgentDefinition
    items: Mapping[str, Mapping[str, Any]]
    kept: Kept
    scorer: Scorer
    spend: Spend
    asked: int = 0

    async def scored(self, prompt: str, candidate: Candidate, *, again: bool = False) -> dict[tuple[str, str], Answer]:
        """What each judge says of each item, answered with the prompt; `again`: with other answers than before. Raises
        TakesNoPrompt, and Failure where the candidate answers no item."""
        where: dict[str, Any] = {"prompt": prompt}
        if self.agent.component is not None:
            where["prompt_component"] = self.agent.component.id.name
        rows = list(self.items.values())
        async with asking_candidate(candidate.url, candidate.key, candidate.limits, where) as asking:
            answering = ForkAnswers(self.kept, asking, where, candidate.url, again=again)
            answers = await answering.to(rows)
            if any(isinstance(one, Failed) and one.why == NO_PROMPT for one in answers.values()):
                raise TakesNoPrompt(NO_PROMPT)
            golden = GoldenSet(rows, "held-out items")
            items, names = golden_sample(golden, answers, self.registry, self.vertical)
            gate = prepare(Milestone.PRE_MERGE, items, names, self.registry, self.vertical)
            found = await score_gate(self.scorer, gate, disk.today(), spend=self.spend)
        self.asked += answering.asked
        given = [one.found if isinstance(one, Pending) else one for one in answers.values()]
        failed = [one.why for one in given if isinstance(one, Failed)]
        if failed and len(failed) == len(given):
            raise Failure(f"--candidate: it answers none of {counted(len(failed), 'item')}: {failed[0]}")
        if NO_PROMPT in failed:
            raise TakesNoPrompt(NO_PROMPT)
        pairs = zip(found.assignments, found.judgements, strict=True)
        return {(judge.id, item.id): said.answer for (judge, item), said in pairs}
