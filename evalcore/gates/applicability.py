"""Whether a judge scores a trace: by filter, sub-agents and sampling rate (PC5 §5.2, FR-11; PF-9 FR-5). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from evalcore.bindings import Unbound, resolve
from evalcore.registry import Judge
from schemas.filters import Filter, Operator

NOTHING: Final = object()
"""Where a filter's path leads nowhere."""
SAME_FIELD: Final = {"sub_agent_id": "sub_agent"}
"""What a filter calls otherwise than a trace's metadata do (contracts §1)."""


def scores(judge: Judge, trace: Mapping[str, Any], share: float) -> bool:
    """`trace` as its event has it; `share` is the trace's, from 0 to 1. A safety judge scores every trace."""
    if judge.safety:
        return True
    sub_agent = _metadata(trace).get("sub_agent")
    if judge.sub_agents and sub_agent not in judge.sub_agents:
        return False
    return share < float(judge.rule.sampling_rate) and (judge.filter is None or matches(judge.filter, trace))


def matches(wanted: Filter, trace: Mapping[str, Any]) -> bool:
    """A path that leads nowhere is empty, and is unequal to everything."""
    found = looked_up(wanted, trace)
    return _COMPARE[wanted.operator](found, wanted.value)


def looked_up(wanted: Filter, trace: Mapping[str, Any]) -> Any:
    """`field` is a field of the trace; else a metadata key."""
    name = SAME_FIELD.get(wanted.field, wanted.field)
    whole: Any = trace[name] if name in trace else _metadata(trace).get(name, NOTHING)
    if wanted.key is None or whole is NOTHING:
        return whole
    key = SAME_FIELD.get(wanted.key, wanted.key)
    if isinstance(whole, Mapping) and key in whole:
        return whole[key]
    try:
        return resolve(key, whole)
    except Unbound:
        return NOTHING


def _metadata(trace: Mapping[str, Any]) -> Mapping[str, Any]:
    found = trace.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _equal(found: Any, wanted: Any) -> bool:
    return found is not NOTHING and (found == wanted or _text(found) == _text(wanted))


def _text(value: Any) -> str:
    """`true` and True, 5 and "5" are one: what a file writes and what a trace carries may differ in type."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _holds(found: Any, wanted: Any) -> bool:
    if isinstance(found, str):
        return _text(wanted) in found
    return isinstance(found, (Sequence, Mapping)) and any(_equal(item, wanted) for item in found)


def _number(compare: Callable[[float, float], bool]) -> Callable[[Any, Any], bool]:
    def compared(found: Any, wanted: Any) -> bool:
        try:
            return compare(float(found), float(wanted))
        except (TypeError, ValueError):
            return False

    return compared


def _among(found: Any, wanted: Any) -> bool:
    return isinstance(wanted, Sequence) and not isinstance(wanted, str) and any(_equal(found, one) for one in wanted)


def _empty(found: Any, _: Any) -> bool:
    return found is NOTHING or found is None or found in ("", [], {})


def _matched(found: Any, wanted: Any) -> bool:
    return found is not NOTHING and _pattern(str(wanted)).search(_text(found)) is not None


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    """The linter refuses patterns that can run away."""
    return re.compile(text)


_COMPARE: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQUALS: _equal,
    Operator.NOT_EQUALS: lambda found, wanted: not _equal(found, wanted),
    Operator.CONTAINS: _holds,
    Operator.NOT_CONTAINS: lambda found, wanted: not _holds(found, wanted),
    Operator.STARTS_WITH: lambda found, wanted: isinstance(found, str) and found.startswith(_text(wanted)),
    Operator.ENDS_WITH: lambda found, wanted: isinstance(found, str) and found.endswith(_text(wanted)),
    Operator.GREATER: _number(lambda found, wanted: found > wanted),
    Operator.AT_LEAST: _number(lambda found, wanted: found >= wanted),
    Operator.LESS: _number(lambda found, wanted: found < wanted),
    Operator.AT_MOST: _number(lambda found, wanted: found <= wanted),
    Operator.IN: _among,
    Operator.MATCHES: _matched,
    Operator.IS_EMPTY: _empty,
    Operator.IS_NOT_EMPTY: lambda found, wanted: not _empty(found, wanted),
}
