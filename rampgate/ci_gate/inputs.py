"""Reads what a gate from CI judges: the dataset, from a file or Opik, the candidate's outputs, traces.

Files are JSON Lines.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from evalcore.gates.golden import CandidateAnswer, Failed, GoldenSet
from evalcore.nesting import DEEPEST, TOO_DEEP, too_deep
from evalcore.registry.registry import Registry
from evalcore.scoring.items import identity
from evalcore.yaml.models import AnyModel, read_as
from rampgate.console import Failure
from rampgate.json_faults import NO_OBJECT, given_twice, refused
from rampgate.registry.dataset_check import read_whole
from rampgate.registry.verticals import load_verticals
from rampgate.settings import Settings

LARGEST = 256 * 1024 * 1024


class BadFile(Failure, ValueError):
    """A file is missing or has the wrong content; the message names file and line."""


def read_dataset(path: Path, name: str | None = None, version: int | None = None) -> GoldenSet:
    """One item a line: `input`, `expected_output`, `metadata` with `id` and `category` (PC5 §5.3). Raises BadFile."""
    items: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    for line, one in lines(path):
        item = _unwrapped(one)
        if item.get("input") is None:
            raise BadFile(f"{path}:{line}: input: an item has one")
        known = identity(item, len(items))
        if known in places:
            raise BadFile(f"{path}:{line}: metadata.id: {known[:80]!r} is the id of line {places[known]} too")
        places[known] = line
        items.append(item)
    return GoldenSet(items, str(path), name, version)


def read_outputs(path: Path) -> dict[str, CandidateAnswer]:
    """One answer a line, by the id of its item: `output` and what else judges read, such as `tool_calls`; or `error`,
    which says why there is no output. Raises BadFile."""
    found: dict[str, CandidateAnswer] = {}
    for line, one in lines(path):
        known = one.get("id")
        if isinstance(known, bool) or not isinstance(known, (str, int)) or known == "":
            raise BadFile(f"{path}:{line}: id: the id of an item is needed")
        if str(known) in found:
            raise BadFile(f"{path}:{line}: id: {str(known)[:80]!r} was answered before")
        if "output" not in one and "error" not in one:
            raise BadFile(f"{path}:{line}: output: an answer has one, or an error")
        answer = {name: value for name, value in one.items() if name not in ("id", "error")}
        found[str(known)] = answer if one.get("output") is not None else Failed(_why(one.get("error")))
    return found


def read_traces(path: Path) -> dict[int, dict[str, Any]]:
    """One trace a line, as on the topic (contracts §1) or as Opik exports it, by its number. Raises BadFile."""
    found = {}
    for line, one in lines(path):
        whole = one.get("trace")
        trace = whole if isinstance(whole, dict) and "input" not in one else one
        if trace.get("input") is None:
            has = f"a trace with {', '.join(trace)[:80]}" if trace else "an empty one"
            remedy = 'put what you have into {"input": …, "output": …, "metadata": …}'
            raise BadFile(f"{path}:{line}: input: must be what the user asked, got {has}; {remedy}")
        found[line] = trace
    return found


async def from_opik(settings: Settings, registry: Registry, vertical: str | None = None) -> GoldenSet | None:
    """The golden set that the vertical is judged on as Opik has it; None where Opik lacks it. Raises Unavailable and
    Unauthorized."""
    return await read_whole(settings, registry.dataset(vertical), load_verticals(settings.configs).values())


def lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file with their line numbers, from 1. Raises BadFile."""
    try:
        if path.stat().st_size > LARGEST:
            raise BadFile(f"{path}: has more than {LARGEST >> 20} MB")
        whole = path.read_bytes()
    except OSError as error:
        raise BadFile(f"{path}: can't be read: {error.strerror or error}") from error
    for number, line in enumerate(io.BytesIO(whole.removeprefix(b"\xef\xbb\xbf")), start=1):
        if not line.strip():
            continue
        try:
            one = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise BadFile(f"{path}:{number}: {refused(line, error)}") from error
        if not isinstance(one, dict):
            raise BadFile(f"{path}:{number}: {NO_OBJECT}")
        # Only a line with so many brackets can be: the walk costs more than all else here.
        if line.count(b"[") + line.count(b"{") > DEEPEST and too_deep(one):
            raise BadFile(f"{path}:{number}: the line {TOO_DEEP}; write it flatter")
        if field := given_twice(line, one):
            raise BadFile(f"{path}:{number}: {field[:80]}: stands twice in this line; keep one")
        yield number, one


def file_as(model: type[AnyModel], path: Path) -> AnyModel:
    """The YAML file as its model. Raises BadFile with all that is wrong in it."""
    try:
        parsed, findings = read_as(model, str(path), path.read_bytes())
    except OSError as error:
        raise BadFile(f"{path}: can't be read: {error.strerror or error}") from error
    if parsed is None or findings:
        raise BadFile("; ".join(str(finding) for finding in findings))
    return parsed.model


def _unwrapped(one: dict[str, Any]) -> dict[str, Any]:
    """The item's own fields, which Opik's exports have below `data`."""
    data = one.get("data")
    return {"id": one.get("id"), **data} if isinstance(data, dict) and "input" not in one else one


def _why(error: object) -> str:
    return f"the candidate failed: {str(error)[:200]}" if error else "the candidate's answer has no output"
