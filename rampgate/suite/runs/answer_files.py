"""Carries answers from the job that runs the candidate's code to the job that has the judges' key.

The file is the candidate's word, and believed as little: the reading job itself says which cases and samples it wants,
of which configuration by the bytes of the parts that it has, and looks each answer up by the hash of these. An answer
can so be nothing but what the candidate says to that case. What is not there is the agent's error, the worst value;
what was not asked for, or stands there twice, refuses the file. Nothing of it becomes an answer that other runs reuse.
Of fresh answers the first line also says whose they are and after which number they come.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalcore.gates.golden import Failed
from evalcore.scoring.calls import Spend
from evalcore.scoring.items import says_nothing
from rampgate.console import Failure
from rampgate.files import replacing
from rampgate.input_files import BadFile, lines
from rampgate.suite.generation import Generated, Known, Left

NOT_THERE = "the file of answers has none to this case"


@dataclass(frozen=True)
class Head:
    """Whose answers a file has, by the hash of the parts. Of fresh ones also which side's, of which commit, and after
    which number they come."""

    configuration: str
    side: str = ""
    commit: str = ""
    after: int = 0


ORDINARY: Final = Head("")
FRESH: Final = ("side", "commit", "after")
Place = tuple[str, int]
"""A case's id and a sample's number."""


class AnswerLine(BaseModel):
    """One answer. `key` is the hash of configuration, case and sample; `error` says why there is no answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    case_id: str
    sample: int
    answer: dict[str, Any] | None = None
    error: str | None = None
    latency_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


def answers_written(path: Path, head: Head, found: Sequence[tuple[Known, Generated]], spend: Spend) -> dict[str, Any]:
    """Writes the file and tells what is in it. Raises Failure."""
    given = [one for _, one in found]
    left = sum(isinstance(one.answer, Left) for one in given)
    return {
        "answers": {
            "asked": sum(not one.kept for one in given) - left,
            "kept": sum(one.kept for one in given),
            "failed": sum(isinstance(one.answer, Failed) for one in given) - left,
        },
        "left": {"why": spend.spent, "answers": left} if left else None,
        "file": str(path),
        "sha256": write_answers(path, head, found),
    }


def write_answers(path: Path, head: Head, found: Iterable[tuple[Known, Generated]]) -> str:
    """Write the file; returns its hash. What was not asked is left out. Raises Failure."""
    hashed = hashlib.sha256()
    try:
        with replacing(path) as file:
            for line in _lines(head, found):
                hashed.update(line)
                file.write(line)
    except OSError as error:
        raise Failure(f"{path}: can't be written: {error.strerror or error}") from error
    return hashed.hexdigest()


def _lines(head: Head, found: Iterable[tuple[Known, Generated]]) -> Iterable[bytes]:
    yield orjson.dumps({name: told for name, told in asdict(head).items() if told}, option=orjson.OPT_APPEND_NEWLINE)
    for known, one in found:
        if isinstance(one.answer, Left):
            continue
        said = {"error": one.answer.why} if isinstance(one.answer, Failed) else {"answer": one.answer}
        told = {"key": known.key, "case_id": one.case_id, "sample": one.sample, "latency_ms": one.latency_ms, **said}
        yield orjson.dumps(told, default=str, option=orjson.OPT_APPEND_NEWLINE)


def read_answers(path: Path, head: Head, wanted: Iterable[Known]) -> dict[Place, Generated]:
    """Returns the answers that are there of those that are wanted. Raises BadFile."""
    known = {_place(one): one.key for one in wanted}
    found: dict[Place, Generated] = {}
    rows = iter(lines(path))
    _, told = next(rows, (0, {}))
    _check_head(path, head, told)
    for number, row in rows:
        line = _parsed(path, number, row)
        place = (line.case_id, line.sample)
        if known.get(place) != line.key:
            raise BadFile(f"{path}:{number}: key: it is not that of sample {line.sample} of {line.case_id[:80]!r} here")
        if place in found:
            raise BadFile(f"{path}:{number}: key: sample {line.sample} of {line.case_id[:80]!r} stands there twice")
        answer = line.answer if line.answer is not None else Failed(line.error or "no reason given")
        found[place] = Generated(line.case_id, line.sample, answer, line.latency_ms)
    return found


def given_answers(path: Path, head: Head, wanted: Sequence[Known], *, whole: bool = False) -> list[Generated]:
    """The answer to each that is wanted. One that is not there is the agent's error, or where the file has to be
    `whole`, refuses it. Raises BadFile."""
    found = read_answers(path, head, wanted)
    missing = [one.wanted for one in wanted if _place(one) not in found]
    if missing and whole:
        first = missing[0]
        raise BadFile(
            f"{path}: {len(missing):,} of {len(wanted):,} answers are missing, the first is sample {first.sample} of "
            f"{first.case_id[:80]!r}"
        )
    absent = {(one.case_id, one.sample): Generated(one.case_id, one.sample, Failed(NOT_THERE)) for one in missing}
    return [(found | absent)[_place(one)] for one in wanted]


def _place(known: Known) -> Place:
    return known.wanted.case_id, known.wanted.sample


def _check_head(path: Path, head: Head, told: Mapping[str, Any]) -> None:
    if told.get("configuration") != head.configuration:
        raise BadFile(
            f"{path}:1: configuration: the answers are of {str(told.get('configuration'))[:80]!r}, and the "
            f"{head.side or 'candidate'}'s parts here make {head.configuration!r}; have this one answer with "
            "`--only generate`"
        )
    for name in FRESH:
        said, expected = told.get(name, getattr(ORDINARY, name)), getattr(head, name)
        if said != expected:
            raise BadFile(
                f"{path}:1: {name}: it is {str(said)[:80]!r} and not {expected!r}; fresh answers are made with the "
                "file that --again writes of the same results"
            )


def _parsed(path: Path, number: int, row: Mapping[str, Any]) -> AnswerLine:
    try:
        line = AnswerLine.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part)[:80] for part in first["loc"]) or "line"
        raise BadFile(f"{path}:{number}: {field}: {first['msg']}") from error
    if (line.answer is None) == (line.error is None) or (line.answer is not None and says_nothing(line.answer)):
        raise BadFile(f"{path}:{number}: answer: a line has one with an output, or an error that says why not")
    return line
