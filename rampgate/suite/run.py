"""Runs `rampgate suite run`: has the candidate answer the suite's cases and scores the answers, into a file of results.

With a baseline it says whether the candidate regresses, by the same rule as `suite compare`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from agents.ports import Unavailable
from evalcore.gates.evaluate import scorer_for
from evalcore.registry.judge import Judge
from evalcore.registry.registry import Registry
from evalcore.scoring.cache import LARGEST
from evalcore.scoring.calls import Spend
from evalcore.yaml.suggestions import UnknownJudge
from rampgate.ci_gate.asked import registry_of
from rampgate.ci_gate.inputs import BadFile
from rampgate.console import Failure, Format, plain, print_json, run
from rampgate.logs import configure_logs
from rampgate.progress import cost, progress
from rampgate.registry.file_writer import replace_file
from rampgate.settings import Settings, revealed
from rampgate.settings_sources import load_settings
from rampgate.suite.answer import document
from rampgate.suite.candidates.configured import asking_candidate
from rampgate.suite.compare import Options as Comparison
from rampgate.suite.compare import compared_files
from rampgate.suite.compared import Compared
from rampgate.suite.dataset_cases import dataset_cases
from rampgate.suite.generation import LARGEST_ANSWER, Generator, Wanted
from rampgate.suite.kept import STORE, KeptFile
from rampgate.suite.report.ci import commands
from rampgate.suite.report.files import check_paths
from rampgate.suite.report.runs import name_of, write_run_reports
from rampgate.suite.scoring import Rubric, ScoredSample
from rampgate.suite.shown import show
from rampgate.suite.suite_files import Suite, SuiteCase, read_suite
from rampgate.worker.gates import call_limits
from schemas.checks.suite import SuiteFile
from schemas.verdicts import VerdictLevel

FOLDER: Final = ".rampgate"
"""Beside the suite's file: its store, and results without another place."""


@dataclass(frozen=True)
class Options:
    """The options of the command, under their own names."""

    suite: Path
    smoke: bool
    out: Path | None
    store: Path | None
    baseline: Path | None
    seed: int
    let_go: tuple[str, ...]
    configs: Path | None
    as_json: bool
    reports: tuple[Path, ...] = ()
    format: Format = Format.TEXT


def run_suite(options: Options) -> int:
    """Run, write the results, tell the verdict, and return the exit code. Raises Failure."""
    configure_logs("error", "console")
    check_paths(options.reports)
    settings = load_settings({"configs": options.configs})
    try:
        suite = read_suite(options.suite, partial(dataset_cases, settings))
    except BadFile as error:
        raise Failure(str(error)) from error
    registry = registry_of(settings, suite.file.vertical) if suite.file.judges else None
    judges = _judges(suite.file, registry)
    rubric = Rubric(judges, suite.checks, registry.manifest.get("schema", {}) if registry is not None else {})
    home = suite.folder / FOLDER
    out = (
        options.out
        or home / f"{suite.file.suite}-{suite.configuration[:12]}-{'smoke' if options.smoke else 'full'}.jsonl"
    )
    try:
        for folder in (out.parent, (options.store or home / STORE).parent):
            folder.mkdir(parents=True, exist_ok=True)
        store = KeptFile(options.store or home / STORE, (revealed(settings.seal_key) or "").encode())
    except (OSError, Unavailable) as error:
        raise Failure(str(error)) from error
    spend = Spend()
    try:
        samples = run(partial(_run, settings, suite, options.smoke, rubric, store, spend))
    finally:
        store.close()
    try:
        replace_file(out, "".join(f"{orjson.dumps(_line(one)).decode()}\n" for one in samples))
    except OSError as error:
        raise Failure(f"{out}: can't be written: {error.strerror or error}") from error
    told, compared = _told(options, suite, judges, samples, out, spend, store.refused)
    if options.reports:
        secret = (revealed(settings.seal_key) or "").encode()
        store_file = options.store or home / STORE
        write_run_reports(
            options.reports, told, out, (store_file, secret), _comparison(options, suite, judges, out).score
        )
    _tell(told, compared, options, cost(spend))
    return 1 if compared is not None and compared.judged.verdict is VerdictLevel.FAIL else 0


async def _run(
    settings: Settings, suite: Suite, smoke: bool, rubric: Rubric, store: KeptFile, spend: Spend
) -> list[ScoredSample]:
    cases = suite.drawn(smoke=smoke)
    wanted = [(case, sample) for sample in range(1, suite.file.samples + 1) for case in cases]
    key, scores = revealed(settings.model_key), store.kind("scores", LARGEST)
    async with (
        asking_candidate(settings, suite.file.candidate, suite.folder, suite.values) as ask,
        scorer_for(cache=scores, limits=call_limits(settings), url=settings.model_url, key=key, words=True) as scorer,
    ):
        answers, traces = store.kind("answers", LARGEST_ANSWER), store.kind("traces", 2 * LARGEST_ANSWER)
        with progress(f"suite {suite.file.suite}", len(wanted), unit="answers", spend=None) as shown:
            room = asyncio.Semaphore(2 * suite.file.candidate.at_once)
            generator = Generator(
                suite.configuration, ask, answers, traces, told=lambda one: shown.advance(), room=room
            )
            held = await generator.known([_wanted(case, sample) for case, sample in wanted])
            asked = [
                (case, sample, partial(generator.one, found))
                for (case, sample), found in zip(wanted, held, strict=True)
            ]
            return await rubric.score(asked, scorer, spend)


def _wanted(case: SuiteCase, sample: int) -> Wanted:
    return Wanted(case.id, sample, {"input": case.row["input"], "metadata": case.row.get("metadata") or {}})


def _judges(file: SuiteFile, registry: Registry | None) -> list[Judge]:
    if registry is None:
        return []
    try:
        return [registry.judge(name, file.vertical) for name in file.judges]
    except UnknownJudge as error:
        raise Failure(f"judges: {error}") from error


def _line(one: ScoredSample) -> dict[str, Any]:
    """A sample as a line of results (contracts §5)."""
    generated = one.generated
    told: dict[str, Any] = {
        "case_id": one.case.id, "slices": list(one.case.slices), "sample": generated.sample, "scores": one.scores,
        "latency_ms": generated.latency_ms,
    }  # fmt: skip
    if one.error is not None:
        told["error"] = one.error
    elif isinstance(generated.answer, Mapping):
        told["output"] = generated.answer["output"]
    optional = {"reasons": one.reasons, "cluster": one.case.cluster, "question_hash": one.case.question}
    if generated.trace is not None:
        told["trace"] = {"hash": generated.trace}
    return told | {name: value for name, value in optional.items() if value}


def _told(
    options: Options,
    suite: Suite,
    judges: list[Judge],
    samples: list[ScoredSample],
    out: Path,
    spend: Spend,
    refused: int,
) -> tuple[dict[str, Any], Compared | None]:
    compared = compared_files(_comparison(options, suite, judges, out)) if options.baseline is not None else None
    generated = [one.generated for one in samples]
    return {
        "suite": suite.file.suite,
        "agent": suite.file.agent,
        "configuration": suite.configuration,
        "parts": dict(suite.parts),
        "set": "smoke" if options.smoke else "full",
        "cases": len({one.case.id for one in samples}),
        "samples": suite.file.samples,
        "answers": {
            "asked": sum(not one.kept for one in generated),
            "kept": sum(one.kept for one in generated),
            "failed": sum(one.error is not None for one in samples),
        },
        "unscored": sum(score is None for one in samples for score in one.scores.values()),
        "judge_calls": spend.calls,
        "tokens": spend.tokens,
        "cost_usd": spend.dollars if spend.priced else None,
        "refused": refused,
        "results": str(out),
        "comparison": document(compared) if compared is not None else None,
    }, compared


def _tell(told: Mapping[str, Any], compared: Compared | None, options: Options, spent: str) -> None:
    if options.format is Format.GITHUB and compared is not None:
        sys.stderr.write("".join(f"{line}\n" for line in commands(told["comparison"], name_of(told))))
    if options.as_json or options.format is Format.JSON:
        print_json(told)
        return
    _show(told, spent)
    if compared is not None:
        show(compared)


def _comparison(options: Options, suite: Suite, judges: list[Judge], out: Path) -> Comparison:
    """How the results are held against the baseline's: on the scale of the score that the suite names."""
    score, scale, safe_at = suite.file.score, (0.0, 1.0), 1.0
    for name, judge in zip(suite.file.judges, judges, strict=True):
        if name == score:
            score, scale, safe_at = judge.id, judge.score_range, float(judge.default_threshold)
    if suite.file.safe_at is not None:
        safe_at = float(suite.file.safe_at)
    return Comparison(
        options.baseline or out, out, score, scale, tuple(suite.file.safety), safe_at, options.seed, as_json=False,
        let_go=options.let_go,
        undrawn=frozenset(case.id for case in suite.cases) if options.smoke else frozenset(),
    )  # fmt: skip


def _show(told: Mapping[str, Any], spent: str) -> None:
    from rich.console import Console

    answers, console = told["answers"], Console(highlight=False, soft_wrap=True)
    console.print(f"{told['suite']}, {told['set']} set: {told['cases']:,} cases × {told['samples']}")
    console.print(f"answers: {answers['asked']:,} asked for, {answers['kept']:,} kept, {answers['failed']:,} failed")
    calls = ", ".join(filter(None, (f"{told['judge_calls']:,} calls", spent, f"{told['unscored']:,} scores missing")))
    console.print(f"judges: {calls}")
    console.print(f"results: {plain(told['results'], 500)}")
