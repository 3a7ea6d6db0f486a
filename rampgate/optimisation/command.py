"""Carries out `rampgate optimize`: reads what it was given, runs the loop, writes drafts and report to the holding
directory."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agents.ports import Unauthorized, Unavailable
from evalcore.gates.golden import GoldenSet
from evalcore.optimisation.definition import AgentDefinition, digest_of
from evalcore.optimisation.measuring import Outcome
from evalcore.registry import disk
from evalcore.registry.files import VERTICALS
from evalcore.registry.judge import digest
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Answer, Scored
from evalcore.scoring.cache import LARGEST
from evalcore.scoring.calls import Spend
from rampgate.asking import NO_MODEL
from rampgate.ci_gate.inputs import from_opik, read_dataset, read_outputs
from rampgate.command import Context, Document
from rampgate.console import Failure, run
from rampgate.judging import scorer_of
from rampgate.optimisation import report
from rampgate.optimisation.holding import HELD, Holding, week_of
from rampgate.optimisation.inputs import read_agent, read_results, require_categories
from rampgate.optimisation.loop import Run, Work, optimise
from rampgate.progress import Progress
from rampgate.report.html import html
from rampgate.report.markdown import markdown
from rampgate.settings import Settings
from rampgate.store.place import place_of
from rampgate.store.sealed import SealedStore
from rampgate.suite.candidates.configured import require_address

FOLDER = "eval/drafts"


@dataclass(frozen=True)
class Options:
    """The options of the command, under their own names."""

    context: Context
    vertical: str
    results: Path
    agent: Path
    dataset: Path | None
    outputs: Path | None
    candidate: str | None
    category: tuple[str, ...]
    out: Path | None
    proposals: int
    most_a_week: int
    held_out: float
    meta_model: str


def optimise_prompt(options: Options) -> Document:
    """Run the loop; exit code 1 where a category underperforms and has no draft. Raises Failure."""
    settings = options.context.settings
    if options.candidate is not None:
        require_address("--candidate", options.candidate, settings)
    if settings.model_url is None:
        raise Failure(NO_MODEL)
    registry = options.context.judging(options.vertical)
    unknown = [name for name in options.category if name not in registry.category_files]
    if unknown:
        raise Failure(f"--category: the manifest has no {unknown[0]!r}; there are {', '.join(registry.category_files)}")
    work = _work(options, settings, registry)
    holding = _holding(options, settings, work.agent)
    with holding.alone():
        made, told = _ran(options, settings, work, holding)
    seen = any(one.kept or (one.before and one.outcome in HELD) for one in made.proposals)
    return Document(told, 0 if seen or not made.targets or _capped(made, work, holding) else 1)


def _work(options: Options, settings: Settings, registry: Registry) -> Work:
    agent = read_agent(options.agent, options.vertical)
    golden = read_dataset(options.dataset) if options.dataset is not None else _of_opik(options, settings, registry)
    require_categories(registry, golden.items, golden.source)
    outputs = read_outputs(options.outputs) if options.outputs is not None else {}
    said = read_results(options.results, registry, options.vertical, agent, golden.items)
    return Work(
        settings, registry, options.vertical, agent, golden, outputs, said, options.category, options.meta_model,
        options.proposals, options.most_a_week, options.held_out, options.candidate,
    )  # fmt: skip


def _of_opik(options: Options, settings: Settings, registry: Registry) -> GoldenSet:
    name = registry.dataset(options.vertical).name
    try:
        golden = run(partial(from_opik, settings, registry, options.vertical))
    except (Unavailable, Unauthorized) as error:
        raise Failure(f"the dataset {name!r} can't be read: {error}; give --dataset FILE") from error
    if golden is None:
        raise Failure(f"Opik has no dataset {name!r}: give --dataset FILE")
    return golden


def _holding(options: Options, settings: Settings, agent: AgentDefinition) -> Holding:
    folder = options.out or settings.configs / VERTICALS / options.vertical / FOLDER
    component = agent.component.id.name if agent.component is not None else None
    name = agent.agent_id or component or Path(agent.file).stem
    return Holding(folder.resolve(), options.vertical, name, week_of(disk.today()))


def _ran(options: Options, settings: Settings, work: Work, holding: Holding) -> tuple[Run, dict[str, Any]]:
    name = _name(work)
    file = holding.answers(name)
    try:
        with closing(place_of(str(file), file, settings).opened()) as store:
            made = _looped(work, holding, store)
    except Unavailable as error:
        raise Failure(f"{file}: answers can't be kept: {error}; delete it, or make room") from error
    for one in made.proposals:
        if one.kept:
            holding.decide(one.hash, one.outcome, one.why, report.draft(work, one, holding.week))
        elif one.outcome is Outcome.REFUSED and not one.before:
            holding.decide(one.hash, one.outcome, one.why, {})
    told = report.document(work, made, holding.week, str(holding.folder))
    if not all(one.before for one in made.proposals):
        start = f"report-{work.vertical}-{name}"
        shown = report.optimise_report(told)
        holding.write(f"{start}.md", markdown(shown))
        holding.write(f"{start}.html", html(shown))
    return made, told


def _looped(work: Work, holding: Holding, store: SealedStore) -> Run:
    spend = Spend(work.settings.gate_calls, work.settings.gate_tokens)

    async def loop() -> Run:
        async with scorer_of(work.settings, store.kind("scores", LARGEST)) as scorer:
            if scorer is None:
                raise Failure(NO_MODEL)
            with Progress("optimising", unit="questions", spend=spend) as shown:
                return await optimise(work, holding, store, scorer, spend, shown.call)

    return run(loop)


def _name(work: Work) -> str:
    """The run's name: the same results of the same agent are the same run, and a new evaluation asks again."""
    said = {f"{judge} {item}": _value(answer) for (judge, item), answer in work.said.items()}
    agent = (work.agent.agent_id, work.agent.agent_version, digest_of(work.agent.others), work.agent.prompt)
    return digest([agent, sorted(said.items()), work.held_out])[:12]


def _value(answer: Answer) -> float | str:
    return answer.value if isinstance(answer, Scored) else type(answer).__name__


def _capped(made: Run, work: Work, holding: Holding) -> bool:
    """Tells whether the week has its drafts, so that there was nothing to do."""
    return len(holding.held()) >= work.cap and not made.proposals
