"""Reads a run of a suite from JSON Lines; what can't be right is refused with file, line and field (contracts §5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from msgspec import Meta, Struct

from evalcore.judges.score_parsing import NOT_APPLICABLE
from evalcore.suite.results import Case, Gone, Sample
from rampgate.input_files import BadFile, ScoreValue, Text, read, twice, wrong

CaseId = Annotated[Text | int, Meta(description="a text that is not empty, or a whole number")]
FromZero = Annotated[float, Meta(ge=0, description="a number from 0")]
Preference = Annotated[Literal["win", "tie", "loss"] | float, Meta(description="win, tie or loss, or 1, 0.5 or 0")]
PREFERRED: Mapping[object, float] = {"win": 1.0, "tie": 0.5, "loss": 0.0, 1.0: 1.0, 0.5: 0.5, 0.0: 0.0}


class TraceLink(Struct, gc=False):
    """Where the sample's recording is: its content's hash, and an address."""

    hash: str | None = None
    url: str | None = None


class ResultLine(Struct, gc=False):
    """One sample of one case. A score that is null could not be scored; one that is absent is no part of it. `error`:
    the agent failed, in place of an output. `pairwise`: by score, whether a judge preferred this output to the
    baseline's. `question_hash`: the hash of what was asked and expected; runs whose hashes differ did not answer the
    same case. `versions`: by score, the version of the judge or check that gave it. Other fields are passed over."""

    case_id: CaseId
    sample: int
    slices: list[Text] = []
    scores: dict[str, ScoreValue] = {}
    output: Any = None
    reasons: dict[str, str] | None = None
    trace: TraceLink | None = None
    error: str | None = None
    cost_usd: FromZero | None = None
    latency_ms: FromZero | None = None
    cluster: CaseId | None = None
    question_hash: Annotated[str, Meta(pattern=r"^[0-9a-f]{16,64}\Z", description="16 to 64 hex digits")] | None = None
    versions: dict[str, str] | None = None
    judged_cut: list[str] | None = None
    pairwise: dict[str, Preference] | None = None


def read_run(path: Path) -> dict[str, Case]:
    """Returns the cases by id. Raises BadFile, for a sample that comes twice, too."""
    cases: dict[str, Case] = {}
    places: dict[tuple[str, int], int] = {}
    told: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for number, line in read(path, ResultLine):
        case_id = str(line.case_id)
        before = places.setdefault((case_id, line.sample), number)
        if before != number:
            raise twice(path, number, "case_id", f"sample {line.sample} of {case_id[:80]!r}", before)
        case = cases.setdefault(case_id, Case(case_id))
        cluster, question = str(line.cluster or ""), line.question_hash or ""
        if line.cluster is not None and case.samples and case.cluster != cluster:
            raise wrong(path, number, "cluster", f"{case.cluster[:80]!r}, as on a line of this case before", cluster)
        if case.samples and case.question != question:
            must = f"{case.question!r}, as on a line of {case_id[:80]!r} before"
            raise wrong(path, number, "question_hash", must, question)
        case.cluster, case.question = cluster or case.cluster, question
        case.slices.update(line.slices)
        versions = line.versions or {}
        # A run has few sets of versions, and thousands of samples.
        case.samples.append(_sample(path, number, line, told.setdefault(tuple(versions.items()), versions)))
    if not cases:
        raise BadFile(f"{path}: has no lines; one is {{case_id, slices, sample, scores}}")
    return cases


def _sample(path: Path, number: int, line: ResultLine, versions: Mapping[str, str]) -> Sample:
    if not line.scores and line.error is None:
        raise wrong(path, number, "scores", "there, or an error that says why the agent gave no output", {})
    scores: dict[str, float | Gone] = {}
    for name, value in line.scores.items():
        if value is None:
            scores[name] = Gone.UNSCORED
        else:
            scores[name] = Gone.NOT_APPLICABLE if value == NOT_APPLICABLE else float(value)
    pairwise: dict[str, float] = {}
    for name, said in (line.pairwise or {}).items():
        if (preferred := PREFERRED.get(said)) is None:
            raise wrong(path, number, f"pairwise.{name}", "win, tie or loss, or 1, 0.5 or 0", said)
        pairwise[name] = preferred
    return Sample(
        line.sample, scores, line.error or ("no reason given" if line.error is not None else ""),
        _text(line.output), line.reasons or {}, (line.trace.url or line.trace.hash or "") if line.trace else "",
        pairwise, line.cost_usd, line.latency_ms, versions,
    )  # fmt: skip


def _text(output: Any) -> str:
    if output is None or isinstance(output, str):
        return output or ""
    return orjson.dumps(output, option=orjson.OPT_INDENT_2).decode()
