"""The loop of `rampgate optimize`: from an eval run to drafts (PF-9 FR-9, §5.7).

results -> categories between floor and threshold -> failing items that may be shown -> the meta-LLM's proposals
        -> what may not be measured is refused -> both prompts on held-out items -> drafts, capped a week
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evalcore.gates.golden import CandidateAnswer, GoldenSet
from evalcore.optimisation.copying import Items, texts_of
from evalcore.optimisation.definition import AgentDefinition, prompt_hash
from evalcore.optimisation.measuring import Measured, Outcome, adjusted, decided, held_again, measured
from evalcore.optimisation.proposals import Failing, TooLong, Variant, question, read_variants, refusal
from evalcore.optimisation.split import Split, split
from evalcore.optimisation.standing import CategoryStanding, expected, standings
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Answer, Scored
from evalcore.scoring.calls import CallFailed, Spend
from evalcore.scoring.calls import Failure as CallFailure
from evalcore.scoring.items import Failed, category_of
from evalcore.scoring.runner import Scorer
from rampgate.console import Failure
from rampgate.optimisation.forks import Forks, TakesNoPrompt
from rampgate.optimisation.holding import HELD, Holding
from rampgate.optimisation.inputs import output_of
from rampgate.settings import Settings
from rampgate.store.sealed import SealedStore
from schemas.counting import counted
from schemas.judges import Milestone

AT = Milestone.PRE_MERGE
SEED = 0
NO_CANDIDATE = "no --candidate was given, which would answer with it"
LEFT_OUT = "(left out: it quotes an item)"
LARGEST_REPLY = 16 << 20
"""Bytes of the meta-LLM's answer; a longer one is asked for again."""


@dataclass(frozen=True)
class Work:
    """What the loop works on. `only`: these categories, all where it is empty. `most` proposals are asked for, and
    `cap` drafts a week stand for a vertical. `candidate` is the address that answers with a prompt."""

    settings: Settings
    registry: Registry
    vertical: str
    agent: AgentDefinition
    golden: GoldenSet
    outputs: Mapping[str, CandidateAnswer]
    said: Mapping[tuple[str, str], Answer]
    only: tuple[str, ...]
    model: str
    most: int
    cap: int
    held_out: float
    candidate: str | None = None


@dataclass(frozen=True)
class Proposal:
    """A proposal and what became of it. `measured` is None where it was not compared with the current prompt; `kept`:
    a person finds it in the holding directory."""

    variant: Variant
    hash: str
    candidate: str
    outcome: Outcome
    why: str
    measured: Measured | None = None
    kept: bool = False
    before: bool = False
    """It was decided in an earlier run."""
    admitted: bool = True
    """It might be measured: nothing in it is an item's."""

    def diff(self, current: str) -> str:
        now = self.variant.prompt.splitlines()
        return "\n".join(difflib.unified_diff(current.splitlines(), now, "current", self.candidate, lineterm=""))


@dataclass
class Run:
    """What a run found. `reason` says why it ended before there were proposals."""

    categories: list[CategoryStanding]
    split: Split
    spend: Spend
    shown: list[Failing] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    reason: str = ""
    candidate_calls: int = 0

    @property
    def targets(self) -> dict[str, Sequence[Judge]]:
        return {one.category: one.targets for one in self.categories if one.targets}


async def optimise(
    work: Work, holding: Holding, store: SealedStore, scorer: Scorer, spend: Spend, tell: Callable[[str], None]
) -> Run:
    """Run the loop; nothing is written but answers, to `store`. `tell` gets what it does. Raises Failure where the
    meta-LLM or the candidate is out of reach, and Unavailable where the meta-LLM's answer can't be kept."""
    rows = work.golden.items
    found = standings(rows, work.said, work.registry, work.vertical, AT)
    made = Run([one for one in found if not work.only or one.category in work.only], split(rows, work.held_out), spend)
    if not made.targets:
        made.reason = "no category is between a set floor and its threshold"
        return made
    if len(holding.held()) >= work.cap and not holding.unfinished():
        made.reason = f"{work.vertical} has its {work.cap} drafts of {holding.week}: review them, or wait for next week"
        return made
    failing = _failing(work, made)
    if not failing:
        made.reason = "of the failing items each is held out, or its output is not known (--outputs)"
        return made
    try:
        tell(f"asking {work.model} about {', '.join(made.targets)}")
        variants = await _proposed(work, made, failing, store, scorer)
    except CallFailed as failure:
        if failure.kind is not CallFailure.SLIP:
            raise Failure(f"the meta-LLM can't be asked: {failure.message}") from failure
        made.reason = f"the meta-LLM gave no usable answer: {failure.message}"
        return made
    except TooLong as error:
        raise Failure(f"{work.agent.file}: prompt: {error}; shorten it") from error
    if not variants:
        made.reason = "the meta-LLM found nothing to improve"
        return made
    proposals = _admitted(work, holding, variants)
    if work.candidate is not None:
        about = (work.registry, work.vertical, work.agent, made.split.held_out)
        forks = Forks(work.settings, *about, work.candidate, store, scorer, spend)
        proposals = await _measured(work, made, proposals, forks, tell)
        made.candidate_calls = forks.asked
    else:
        proposals = [replace(one, why=NO_CANDIDATE) if _waits(one) else one for one in proposals]
    made.proposals = _capped(work, holding, proposals)
    return made


def _failing(work: Work, made: Run) -> list[Failing]:
    """The failing items of the categories that the loop works on, of those that the meta-LLM may see."""
    found = []
    for item, row in made.split.shown.items():
        category, output = category_of(row), output_of(row, item, work.outputs)
        scores: dict[str, tuple[float, float]] = {}
        shares = []
        for judge in made.targets.get(category, ()):
            said, wanted = work.said.get((judge.id, item)), float(judge.thresholds[AT])
            if isinstance(said, Scored) and said.value < wanted:
                scores[judge.id] = (said.value, wanted)
                shares.append(judge.share(said.value))
        if scores and output is not None:
            found.append(Failing(item, category, row.get("input"), output, scores, min(shares)))
    return found


async def _proposed(
    work: Work, made: Run, failing: Sequence[Failing], store: SealedStore, scorer: Scorer
) -> list[Variant]:
    """The meta-LLM's proposals; its answer of before, where it was asked the same. Raises CallFailed, TooLong."""
    judges = {judge.id: judge for own in made.targets.values() for judge in own}
    asked, made.shown = question(work.agent, failing, list(judges.values()), work.model, work.most)
    kept = store.kind("proposals", LARGEST_REPLY)
    about = repr((scorer.source(asked.model), asked.model, asked.rubric, asked.turn))
    key = hashlib.sha256(about.encode(errors="surrogatepass")).hexdigest()
    (said,) = await kept.get_many([key])
    if said is None:

        def read(text: str) -> str:
            read_variants(text, work.most)
            return text

        said = (await scorer.ask("optimise", asked, read, made.spend)).encode()
        await kept.put(key, said)
    return read_variants(said.decode(), work.most)


def _admitted(work: Work, holding: Holding, variants: Sequence[Variant]) -> list[Proposal]:
    """The proposals, each prompt once: refused where it may not be measured or was decided before, else unmeasured as
    yet."""
    answered = (one for one in work.outputs.values() if not isinstance(one, Failed))
    items = Items(text for whole in (work.golden.items, answered) for one in whole for text in texts_of(one))
    found: dict[str, Proposal] = {}
    for variant in variants:
        name = prompt_hash(variant.prompt)
        if name in found:
            continue
        why, known = refusal(variant, work.agent, items), holding.known(name)
        if items.copied(variant.rationale, work.agent.prompt):
            variant = replace(variant, rationale=LEFT_OUT)
        outcome = Outcome.REFUSED if why else Outcome.UNMEASURED
        made = Proposal(variant, name, holding.candidate(name), outcome, why, admitted=not why)
        if known is not None and known.outcome is not Outcome.UNMEASURED:
            made = replace(made, outcome=known.outcome, why=f"decided before: {known.why}", before=True)
        found[name] = made
    return list(found.values())


async def _measured(
    work: Work, made: Run, proposals: Sequence[Proposal], forks: Forks, tell: Callable[[str], None]
) -> list[Proposal]:
    """The proposals with what their measurement says. Raises Failure where the candidate answers nothing at all."""
    out = list(proposals)
    waiting = [at for at, one in enumerate(out) if _waits(one)]
    held = made.split.held_out
    categories = {item: category_of(row) for item, row in held.items()}
    judges = {judge.id: judge for row in held.values() for judge in expected(row, work.registry, work.vertical)}
    found: dict[int, Measured] = {}
    try:
        tell("measuring the current prompt")
        before = await forks.scored(work.agent.prompt) if waiting else {}
        made.spend.expected = made.spend.questions * (1 + len(waiting))
        for number, at in enumerate(waiting, start=1):
            tell(f"measuring fork {number} of {len(waiting)}")
            after = await forks.scored(out[at].variant.prompt)
            found[at] = measured(before, after, categories, made.targets, judges.values(), AT, SEED)
    except TakesNoPrompt as error:
        for at in waiting:
            out[at] = replace(out[at], why=str(error))
        return out
    for at, one in zip(found, adjusted(list(found.values())), strict=True):
        outcome, why = decided(one)
        out[at] = replace(out[at], outcome=outcome, why=why, measured=one)
    drafts = [at for at in found if out[at].outcome is Outcome.DRAFT]
    if drafts:
        tell(f"measuring {counted(len(drafts), 'draft')} once more, on fresh answers")
        made.spend.expected += made.spend.questions // (1 + len(waiting)) * (1 + len(drafts))
        before = await forks.scored(work.agent.prompt, again=True)
    fresh = list[Measured]()
    for at in drafts:
        after = await forks.scored(out[at].variant.prompt, again=True)
        fresh.append(measured(before, after, categories, made.targets, judges.values(), AT, SEED))
    for at, one in zip(drafts, adjusted(fresh), strict=True):
        outcome, why = held_again(out[at].measured or one, one)
        out[at] = replace(out[at], outcome=outcome, why=why, measured=one)
    return out


def _waits(one: Proposal) -> bool:
    return one.outcome is Outcome.UNMEASURED


def _capped(work: Work, holding: Holding, proposals: Sequence[Proposal]) -> list[Proposal]:
    """The proposals with those marked that a person finds: of new ones so many of the best as the week has room for."""
    there = holding.held()
    room = work.cap - len(there)
    new = [at for at, one in enumerate(proposals) if one.outcome in HELD and not one.before]
    out = list(proposals)
    for at in sorted(new, key=lambda at: _gain(proposals[at]), reverse=True):
        known = out[at].candidate in there or holding.known(out[at].hash) is not None
        if known or room > 0:
            out[at] = replace(out[at], kept=True)
            room -= not known
        else:
            out[at] = replace(out[at], why=f"{out[at].why}; the week has its {work.cap} drafts")
    return out


def _gain(one: Proposal) -> float:
    return sum(change.delta for change in one.measured.categories.values()) if one.measured is not None else 0.0
