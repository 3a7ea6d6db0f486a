"""Reads what a gate from CI judges: the dataset, from a file or Opik, the candidate's outputs, traces.

Files are JSON Lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import UNSET

from evalcore.gates.golden import CandidateAnswer, Evidenced, GoldenSet
from evalcore.registry.registry import Registry
from evalcore.remediation.sealing import Seals
from evalcore.scoring.items import Failed, identity
from rampgate.input_files import BadFile, fault, lines, twice, wrong
from rampgate.registry.dataset_check import read_whole
from rampgate.registry.verticals import load_verticals
from rampgate.settings import Settings

_NO_SEALS: Final = Seals()


def read_dataset(path: Path, name: str | None = None, version: int | None = None) -> GoldenSet:
    """One item a line: `input`, `expected_output`, `metadata` with `id` and `category` (PC5 §5.3). Raises BadFile."""
    items: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    for line, one in lines(path):
        item = _unwrapped(one)
        if item.get("input") is None:
            raise wrong(path, line, "input", "what the agent is asked", None)
        known = identity(item, len(items))
        if known in places:
            raise twice(path, line, "metadata.id", repr(known[:80]), places[known])
        places[known] = line
        items.append(item)
    return GoldenSet(items, str(path), name, version)


def read_outputs(path: Path, seals: Seals = _NO_SEALS) -> dict[str, CandidateAnswer]:
    """One answer a line, by the id of its item: `output` and what else judges read, such as `tool_calls`; or `error`,
    which says why there is no output. What a line says of a workflow counts where it bears one of the `seals`. Raises
    BadFile."""
    found: dict[str, CandidateAnswer] = {}
    places: dict[str, int] = {}
    for line, one in lines(path):
        known = one.get("id")
        if isinstance(known, bool) or not isinstance(known, (str, int)) or known == "":
            raise wrong(path, line, "id", "the id of an item, a text or a whole number", known)
        if (before := places.setdefault(str(known), line)) != line:
            raise twice(path, line, "id", f"the answer to {str(known)[:80]!r}", before)
        if "output" not in one and "error" not in one:
            raise wrong(path, line, "output", "there, or an error that says why not", UNSET)
        given = {name: value for name, value in one.items() if name not in ("id", "error")}
        answer = Evidenced(given) if seals.hold(one) else given
        found[str(known)] = answer if one.get("output") is not None else Failed(_why(one.get("error")))
    return found


def read_traces(path: Path, seals: Seals = _NO_SEALS) -> dict[int, Mapping[str, Any]]:
    """One trace a line, as on the topic (contracts §1) or as Opik exports it, by its number. What a trace says of its
    workflow counts where it bears one of the `seals`. Raises BadFile."""
    found = dict[int, Mapping[str, Any]]()
    for line, one in lines(path):
        whole = one.get("trace")
        trace = whole if isinstance(whole, dict) and "input" not in one else one
        if trace.get("input") is None:
            has = f"a trace with {', '.join(trace)[:80]}" if trace else "an empty one"
            remedy = 'put what you have into {"input": …, "output": …, "metadata": …}'
            raise BadFile(f"{path}:{line}: {fault('input', 'what the user asked', has, remedy)}")
        found[line], _ = seals.without_forged(trace)
    return found


async def from_opik(settings: Settings, registry: Registry, vertical: str | None = None) -> GoldenSet | None:
    """The golden set that the vertical is judged on as Opik has it; None where Opik lacks it. Raises Unavailable and
    Unauthorized."""
    return await read_whole(settings, registry.dataset(vertical), load_verticals(settings.configs).values())


def _unwrapped(one: dict[str, Any]) -> dict[str, Any]:
    """The item's own fields, which Opik's exports have below `data`."""
    data = one.get("data")
    return {"id": one.get("id"), **data} if isinstance(data, dict) and "input" not in one else one


def _why(error: object) -> str:
    return f"the candidate failed: {str(error)[:200]}" if error else "the candidate's answer has no output"
