"""Chooses the judges that score a trace, by filter, sub-agent and sampling rate, and weighs each score. Pure.

All judges score a turn that a user voted down, whatever their sampling rates (PC5 §5.2, FR-11; PF-9 FR-5). Such a turn
is scored for certain, any other with the probability of the rate. A score therefore weighs the inverse of its
probability, so that means over live scores are those of the whole traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from evalcore.judges.bindings import Unbound, resolve
from evalcore.registry.patterns import contains_match
from evalcore.registry.registry import Judge, Registry
from evalcore.yaml.suggestions import UnknownCategory
from schemas.judges import Filter, Operator

NOTHING: Final = object()
"""The value at a path that leads to nothing."""
CERTAIN: Final = 0.0
"""A share that is below every rate above 0."""
SAME_FIELD: Final = {"sub_agent_id": "sub_agent"}
"""Names that filters and trace metadata spell differently (contracts §1)."""


def scores(judge: Judge, trace: Mapping[str, Any], share: float) -> bool:
    """True where the judge scores the trace. `trace` has the form of its event; `share` is the trace's, from 0 to 1. A
    safety judge scores every trace."""
    if judge.safety:
        return True
    sub_agent = _metadata(trace).get("sub_agent")
    if judge.sub_agents and sub_agent not in judge.sub_agents:
        return False
    return share < float(judge.rule.sampling_rate) and (judge.filter is None or matches(judge.filter, trace))


def matches(wanted: Filter, trace: Mapping[str, Any]) -> bool:
    """True where the filter fits the trace. A path that leads to nothing is empty, and unequal to everything."""
    found = looked_up(wanted, trace)
    return _COMPARE[wanted.operator](found, wanted.value)


def looked_up(wanted: Filter, trace: Mapping[str, Any]) -> Any:
    """The value that the filter compares: a field of the trace, else a metadata key; NOTHING where there is none."""
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
    """Returns the value as text, so that `true` equals True and 5 equals "5": a file and a trace may differ in type."""
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
    return found is not NOTHING and contains_match(str(wanted), _text(found))


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


def judges_of(registry: Registry, trace: Mapping[str, Any]) -> tuple[Judge, ...]:
    """Returns the judges of the trace's category, as its vertical sees them. Of a trace that names no known category it
    is all judges that fire: a judge without a filter fires on every trace (PC5 §5.2)."""
    metadata = _metadata(trace)
    vertical, category = metadata.get("vertical"), metadata.get("category")
    seen = vertical if isinstance(vertical, str) else None
    if isinstance(category, str):
        try:
            return registry.category(category, seen)
        except UnknownCategory:
            pass
    return tuple(judge for judge in registry.all(seen) if judge.fires)


def chosen(judges: Iterable[Judge], trace: Mapping[str, Any], share: float, voted_down: bool) -> list[Judge]:
    """Returns the judges that score this trace. A judge with a rate of 0 scores no live trace, not even a voted-down
    one: those alone would say nothing of the traffic."""
    return [judge for judge in judges if scores(judge, trace, CERTAIN if voted_down else share)]


def chance(judge: Judge, voted_down: bool) -> float:
    """Probability that this judge scored an eligible trace. `voted_down`: the trace was judged for that, or would have
    been."""
    return 1.0 if voted_down or judge.safety else float(judge.rule.sampling_rate)


def weight(judge: Judge, voted_down: bool) -> float:
    """Weight of a score: the inverse of its chance."""
    return 1.0 / chance(judge, voted_down)


def kept_weight(judge: Judge, voted_down: bool) -> float:
    """Weight of a score that is there already. A judge whose rate is 0 by now still has scores from before; they weigh
    1."""
    return weight(judge, voted_down) if voted_down or judge.safety or judge.rule.sampling_rate else 1.0
