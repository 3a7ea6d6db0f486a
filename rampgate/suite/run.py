"""Runs `rampgate suite run`: has the candidate answer the suite's cases and scores the answers, into a file of results.

With a baseline it says whether the candidate regresses, by the same rule as `suite compare`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from agents.ports import Unavailable
from evalcore.registry.judge import Judge
from evalcore.registry.registry import Registry
from evalcore.scoring.calls import Spend
from evalcore.yaml.suggestions import UnknownJudge
from rampgate.ci_gate.asked import registry_of
from rampgate.ci_gate.inputs import BadFile
from rampgate.console import Failure, Format, print_json, run
from rampgate.logs import configure_logs
from rampgate.progress import cost
from rampgate.registry.file_writer import replace_file
from rampgate.settings import revealed
from rampgate.settings_sources import load_settings
from rampgate.suite.answer import document
from rampgate.suite.compare import Options as Comparison
from rampgate.suite.compare import compared_files
from rampgate.suite.compared import Compared
from rampgate.suite.dataset_cases import dataset_cases
from rampgate.suite.generation import Left, dollars_of
from rampgate.suite.kept import STORE, KeptFile
from rampgate.suite.report.canary import canary_plan, check_path, write_plan
from rampgate.suite.report.ci import commands
from rampgate.suite.report.files import check_paths
from rampgate.suite.report.runs import name_of, write_run_reports
from rampgate.suite.runs.answer_files import answers_written
from rampgate.suite.runs.baseline import PASSED, baseline_of, by_same_judges, keep_run, verdict_of
from rampgate.suite.runs.confirmation import Confirming, confirm
from rampgate.suite.runs.only import Only
from rampgate.suite.runs.session import Session
from rampgate.suite.runs.shown import show_run, tell_answers, tell_plan
from rampgate.suite.scoring import Rubric, ScoredSample
from rampgate.suite.shown import show
from rampgate.suite.suite_files import Suite, read_suite
from schemas.checks.suite import SuiteFile

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
    plan: bool = False
    max_cost: float | None = None
    label: str = ""
    canary: Path | None = None
    only: Only | None = None
    answers: Path | None = None
    confirm: bool = True
    base: str | None = None


def run_suite(options: Options) -> int:
    """Run, write the results, tell the verdict, and return the exit code. Raises Failure."""
    configure_logs("error", "console")
    check_paths(options.reports)
    check_path(options.canary)
    if (options.only is None) != (options.answers is None):
        raise Failure("--only and --answers go together: the file that answers go to, or come from")
    settings = load_settings({"configs": options.configs})
    try:
        suite = read_suite(options.suite, partial(dataset_cases, settings))
    except BadFile as error:
        raise Failure(str(error)) from error
    registry = (
        registry_of(settings, suite.file.vertical) if suite.file.judges and options.only is not Only.GENERATE else None
    )
    judges = judges_of(suite.file, registry)
    rubric = Rubric(judges, suite.checks, registry.manifest.get("schema", {}) if registry is not None else {})
    home = suite.folder / FOLDER
    out = options.out or results_file(suite, smoke=options.smoke)
    try:
        for folder in (out.parent, (options.store or home / STORE).parent):
            folder.mkdir(parents=True, exist_ok=True)
        store = KeptFile(options.store or home / STORE, (revealed(settings.seal_key) or "").encode())
    except (OSError, Unavailable) as error:
        raise Failure(str(error)) from error
    session = Session(settings, suite, options.smoke, rubric, store)
    spend = Spend(settings.gate_calls, settings.gate_tokens, options.max_cost)
    now = datetime.now(UTC)
    try:
        if options.plan:
            return tell_plan(_head(options, suite) | run(session.plan), as_json=options.as_json)
        if options.only is Only.GENERATE and options.answers is not None:
            found = run(partial(session.generate, spend))
            told = _head(options, suite) | answers_written(options.answers, suite.configuration, found, spend)
            return tell_answers(told, as_json=options.as_json)
        baseline = baseline_of(options.baseline, store, suite.file.suite, out.parent, smoke=options.smoke)
        try:
            doing = (
                partial(session.run, spend)
                if options.answers is None
                else partial(session.score, options.answers, spend)
            )
            samples = run(doing)
        except BadFile as error:
            raise Failure(str(error)) from error
        results = "".join(f"{orjson.dumps(_line(one, rubric)).decode()}\n" for one in samples)
        try:
            replace_file(out, results)
        except OSError as error:
            raise Failure(f"{out}: can't be written: {error.strerror or error}") from error
        if baseline is not None:
            baseline = by_same_judges(baseline, session, spend, out.parent)
        told = _head(options, suite) | _found(samples, spend, baseline.left if baseline is not None else 0)
        told |= {"refused": store.refused, "results": str(out)}
        compared = None
        if baseline is not None:
            options = replace(options, baseline=baseline.file)
            how = _comparison(options, suite, judges, out)
            compared = compared_files(how)
            if options.confirm:
                reading = partial(read_suite, fetched=partial(dataset_cases, settings))
                made = Confirming(
                    options.suite, session, baseline, options.base, out, reading, partial(_line, rubric=rubric),
                    answers_given=options.answers is not None,
                )  # fmt: skip
                compared = confirm(made, compared, how, spend)
                told |= _found(samples, spend, baseline.left)
        told |= {
            "baseline": baseline.told(now) if baseline is not None else None,
            "comparison": document(compared) if compared is not None else None,
        }
        told["verdict"] = verdict_of(told, samples, suite.file.score, judges)
        keep_run(store, told, judges, results.encode(), options.label, now)
        told["store_failures"] = store.failures[:1]
        told["canary_plan"] = canary_plan(told, suite.file.vertical, [judge.id for judge in judges], now)
    finally:
        store.close()
    write_plan(options.canary, told["canary_plan"])
    if options.reports:
        kept_in = (options.store or home / STORE, (revealed(settings.seal_key) or "").encode())
        score = _comparison(options, suite, judges, out).score
        write_run_reports(options.reports, told, out, kept_in, score)
    return _tell(told, compared, options, spend)


def results_file(suite: Suite, *, smoke: bool) -> Path:
    """Where results go that no other place is named for."""
    kind = "smoke" if smoke else "full"
    return suite.folder / FOLDER / f"{suite.file.suite}-{suite.configuration[:12]}-{kind}.jsonl"


def judges_of(file: SuiteFile, registry: Registry | None) -> list[Judge]:
    """The suite's judges. Raises Failure."""
    if registry is None:
        return []
    try:
        return [registry.judge(name, file.vertical) for name in file.judges]
    except UnknownJudge as error:
        raise Failure(f"judges: {error}") from error


def _line(one: ScoredSample, rubric: Rubric) -> dict[str, Any]:
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
    optional = {
        "cost_usd": dollars_of(generated.answer),
        "reasons": one.reasons,
        "cluster": one.case.cluster,
        "question_hash": one.case.question,
        "versions": rubric.versions,
    }
    if generated.trace is not None:
        told["trace"] = {"hash": generated.trace}
    return told | {name: value for name, value in optional.items() if value}


def _head(options: Options, suite: Suite) -> dict[str, Any]:
    return {
        "suite": suite.file.suite,
        "agent": suite.file.agent,
        "configuration": suite.configuration,
        "parts": dict(suite.parts),
        "set": "smoke" if options.smoke else "full",
        "cases": len(suite.drawn(smoke=options.smoke)),
        "samples": suite.file.samples,
    }


def _found(samples: list[ScoredSample], spend: Spend, beside: int) -> dict[str, Any]:
    generated = [one.generated for one in samples]
    left = sum(isinstance(one.answer, Left) for one in generated)
    return {
        "answers": {
            "asked": sum(not one.kept for one in generated) - left,
            "kept": sum(one.kept for one in generated),
            "failed": sum(one.error is not None for one in samples),
        },
        "unscored": sum(score is None for one in samples for score in one.scores.values()),
        "judge_calls": spend.calls,
        "priced_calls": spend.priced,
        "tokens": spend.tokens,
        "cost_usd": spend.dollars if spend.priced or spend.dollars else None,
        "answers_cost_usd": sum(dollars_of(one.answer) or 0.0 for one in generated if not one.kept),
        "left": (
            {"why": spend.spent, "answers": left, "scores": beside + sum(len(one.left) for one in samples)}
            if spend.spent and (beside or any(one.left for one in samples))
            else None
        ),
    }


def _tell(told: Mapping[str, Any], compared: Compared | None, options: Options, spend: Spend) -> int:
    if options.format is Format.GITHUB and compared is not None:
        sys.stderr.write("".join(f"{line}\n" for line in commands(told["comparison"], name_of(told))))
    if options.as_json or options.format is Format.JSON:
        print_json(told)
    else:
        show_run(told, cost(spend))
        if compared is not None:
            show(compared)
    for failure in told["store_failures"]:
        sys.stderr.write(f"{failure}; what was asked is not kept, and the next run asks it again\n")
    return 0 if told["verdict"] in PASSED else 1


def score_of(suite: Suite, judges: Sequence[Judge]) -> tuple[str, tuple[float, float], float]:
    """The score that gates look at, its scale, and below which value a case of safety fails."""
    score, scale, safe_at = suite.file.score, (0.0, 1.0), 1.0
    for name, judge in zip(suite.file.judges, judges, strict=True):
        if name == score:
            score, scale, safe_at = judge.id, judge.score_range, float(judge.default_threshold)
    if suite.file.safe_at is not None:
        safe_at = float(suite.file.safe_at)
    return score, scale, safe_at


def _comparison(options: Options, suite: Suite, judges: list[Judge], out: Path) -> Comparison:
    """How the results are held against the baseline's: on the scale of the score that the suite names."""
    score, scale, safe_at = score_of(suite, judges)
    return Comparison(
        options.baseline or out, out, score, scale, tuple(suite.file.safety), safe_at, options.seed, as_json=False,
        let_go=options.let_go,
        undrawn=frozenset(case.id for case in suite.cases) if options.smoke else frozenset(),
    )  # fmt: skip
