"""Carries answers from the job that runs the candidate's code to the job that has the judges' key.

The file is the candidate's word, and believed as little: the reading job itself says which cases and samples it wants,
of which configuration by the bytes of the parts that it has, and looks each answer up by the hash of these. An answer
can so be nothing but what the candidate says to that case. What is not there is the agent's error, the worst value;
what was not asked for, or stands there twice, refuses the file. Nothing of it becomes an answer that other runs reuse.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from evalcore.scoring.calls import Spend
from evalcore.scoring.items import Failed, says_nothing
from rampgate.files import replacing, writing
from rampgate.input_files import BadFile, line_of, lines
from rampgate.suite.generation import Generated, Left
from rampgate.suite.scoring import Place
from schemas.checks.suite_again import Side

NOT_THERE = "the file of answers has none to this case"
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Head(BaseModel):
    """The first line: whose answers follow, by the hash of the parts. Those that answer a request for fresh samples
    have its hash."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    configuration: Hash
    side: Side = Side.CANDIDATE
    request: Hash | None = None


class AnswerLine(BaseModel):
    """One answer. `key` is the hash of configuration, case and sample; `error` says why there is no answer, and
    `may_pass` whether the next try may have one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: Hash
    case_id: str
    sample: int
    answer: dict[str, Any] | None = None
    error: str | None = None
    may_pass: bool = False
    latency_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


def write_answers(
    path: Path, head: Head, keys: Mapping[Place, str], found: Sequence[Generated], spend: Spend
) -> dict[str, Any]:
    """Write the file, without what was not asked; returns what is in it, with its hash. Raises Failure."""
    left = sum(isinstance(one.answer, Left) for one in found)
    hashed = hashlib.sha256()
    with writing(path), replacing(path) as file:
        for line in _lines(head, keys, found):
            hashed.update(line)
            file.write(line)
    return {
        "answers": {
            "asked": sum(not one.kept for one in found) - left,
            "kept": sum(one.kept for one in found),
            "failed": sum(isinstance(one.answer, Failed) for one in found) - left,
        },
        "left": {"why": spend.spent, "answers": left} if left else None,
        "file": str(path),
        "sha256": hashed.hexdigest(),
    }


def _lines(head: Head, keys: Mapping[Place, str], found: Iterable[Generated]) -> Iterable[bytes]:
    yield orjson.dumps(head.model_dump(mode="json", exclude_none=True), option=orjson.OPT_APPEND_NEWLINE)
    for one in found:
        if isinstance(one.answer, Left):
            continue
        said: dict[str, Any] = {"answer": one.answer}
        if isinstance(one.answer, Failed):
            said = {"error": one.answer.why} | ({"may_pass": True} if one.answer.may_pass else {})
        about = {"case_id": one.case_id, "sample": one.sample, "latency_ms": one.latency_ms}
        told = {"key": keys[one.case_id, one.sample], **about, **said}
        yield orjson.dumps(told, default=str, option=orjson.OPT_APPEND_NEWLINE)


def files_by_request(paths: Iterable[Path]) -> tuple[Path, dict[Side, Path]]:
    """Returns the file of the first answers, and those that answer a request for fresh samples by their side. Raises
    BadFile, also for two that say the same of themselves."""
    found: dict[Side | None, Path] = {}
    for path in paths:
        _, told = next(iter(lines(path)), (0, {}))
        head = line_of(told, Head, path, 1)
        of = head.side if head.request is not None else None
        if of in found:
            said = f"fresh answers of the {of}" if of is not None else "first answers"
            raise BadFile(f"{path}:1: it has {said}, and so has {found[of]}; give --score one file of each")
        found[of] = path
    if None not in found:
        raise BadFile(f"{next(iter(found.values()))}:1: no file has the first answers; give --score that one, too")
    first = found.pop(None)
    return first, {side: path for side, path in found.items() if side is not None}


def read_answers(path: Path, head: Head, keys: Mapping[Place, str], *, whole: bool = False) -> dict[Place, Generated]:
    """Returns the answer to each sample that is wanted. One that is not there is the agent's error, or where the file
    has to be `whole`, refuses it. Raises BadFile."""
    found: dict[Place, Generated] = {}
    rows = iter(lines(path))
    _, told = next(rows, (0, {}))
    _check_head(path, head, line_of(told, Head, path, 1))
    for number, row in rows:
        line = line_of(row, AnswerLine, path, number)
        place = (line.case_id, line.sample)
        if keys.get(place) != line.key:
            raise BadFile(f"{path}:{number}: key: it is not that of sample {line.sample} of {line.case_id[:80]!r} here")
        if place in found:
            raise BadFile(f"{path}:{number}: key: sample {line.sample} of {line.case_id[:80]!r} stands there twice")
        if (line.answer is None) == (line.error is None) or (line.answer is not None and says_nothing(line.answer)):
            raise BadFile(f"{path}:{number}: answer: a line has one with an output, or an error that says why not")
        answer = line.answer if line.answer is not None else Failed(line.error or "no reason given", line.may_pass)
        found[place] = Generated(line.case_id, line.sample, answer, line.latency_ms)
    missing = [place for place in keys if place not in found]
    if missing and whole:
        case, sample = missing[0]
        many = f"{len(missing):,} of {len(keys):,} answers are missing"
        raise BadFile(f"{path}: {many}, the first is sample {sample} of {case[:80]!r}")
    return found | {place: Generated(*place, Failed(NOT_THERE)) for place in missing}


def _check_head(path: Path, head: Head, told: Head) -> None:
    if told.configuration != head.configuration:
        raise BadFile(
            f"{path}:1: configuration: the answers are of {told.configuration!r}, and the {head.side}'s parts make "
            f"{head.configuration!r}; have this one answer with `--generate`"
        )
    if told != head:
        raise BadFile(
            f"{path}:1: request: it answers another request than that of these results; fresh answers are made with "
            "the file that `--score` writes of the same results"
        )
