"""Finds the expected tool calls, with their arguments, among those made (`path.expected_calls`). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from evalcore.nesting import too_deep
from evalcore.registry.patterns import refusal, searched
from evalcore.suite.checks import Checker
from schemas.checks.suite import Check
from schemas.expected_calls import Alternatives, ExpectedArguments, ExpectedCall, ExpectedCalls, Order

SHOWN: Final = 200
"""Characters of a value that a reason shows."""
Calls = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Shortfall:
    """Why the calls made are not those expected. `unknown`: they might be, were all arguments in the trace."""

    reasons: tuple[str, ...]
    unknown: bool = False


def shortfall(expected: ExpectedCalls, calls: Calls) -> Shortfall | None:
    """Returns why the calls, in the trace's form, are not those expected; None where they are. A call that failed was
    made, too. Each expected call takes a call of its own, so two alike ask for two."""
    reasons = _reasons(expected, calls, believing=False)
    if not reasons:
        return None
    return Shortfall(tuple(reasons), unknown=not _reasons(expected, calls, believing=True))


def unusable(expected: ExpectedCalls) -> str | None:
    """Returns what is wrong with a pattern or a schema that a spec has, by its field; None where all can be used."""
    for number, wanted in enumerate(expected.calls):
        for one in wanted.any_of if isinstance(wanted, Alternatives) else (wanted,):
            rules = one.arguments or ExpectedArguments()
            for name, pattern in (rules.regex or {}).items():
                if (why := refusal(pattern)) is not None:
                    return f"calls.{number}.arguments.regex.{name}: must be a pattern of RE2, got {why}"
            if rules.json_schema is not None:
                try:
                    _checker(_json(rules.json_schema))
                except ValueError as error:
                    return f"calls.{number}.arguments.json_schema: {error}"
    return None


def _reasons(expected: ExpectedCalls, calls: Calls, *, believing: bool) -> list[str]:
    """Why not; `believing` takes arguments that are unknown for right."""
    fits = [
        [_misfit(wanted, calls, place, believing=believing) is None for place in range(len(calls))]
        for wanted in expected.calls
    ]
    taken = _assigned(fits) if expected.order is Order.ANY else _in_order(fits, strict=expected.order is Order.STRICT)
    reasons = [
        _why(number, wanted, calls, taken, expected.order)
        for number, wanted in enumerate(expected.calls)
        if number not in taken
    ]
    if expected.order is Order.STRICT and len(calls) > len(expected.calls):
        reasons.append(f"call {len(expected.calls) + 1} must not be there, got {_shown(calls[len(expected.calls)])}")
    return reasons


def _assigned(fits: Sequence[Sequence[bool]]) -> dict[int, int]:
    """For as many expected calls as can be, each a call of its own."""
    if not fits or not fits[0]:
        return {}
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    found = maximum_bipartite_matching(csr_array(fits), perm_type="column")
    return {number: int(place) for number, place in enumerate(found) if place >= 0}


def _in_order(fits: Sequence[Sequence[bool]], *, strict: bool) -> dict[int, int]:
    """For each expected call in turn, the first that fits behind the last; where `strict`, the one in its place."""
    taken: dict[int, int] = {}
    begin = 0
    for number, row in enumerate(fits):
        places = range(number, min(number + 1, len(row))) if strict else range(begin, len(row))
        place = next((place for place in places if row[place]), None)
        if place is not None:
            taken[number], begin = place, place + 1
    return taken


def _why(number: int, wanted: ExpectedCall | Alternatives, calls: Calls, taken: Mapping[int, int], order: Order) -> str:
    """Why no call was found, by the one that comes nearest: the one in its place, or one of the tool."""
    said = f"expected call {number + 1}, {_named(wanted)}: "
    if order is Order.STRICT:
        if number >= len(calls):
            return f"{said}there is no call {number + 1}"
        return f"{said}call {number + 1}, {_shown(calls[number])}: {_misfit(wanted, calls, number)}"
    free = [place for place, call in enumerate(calls) if place not in taken.values() and call["name"] in _tools(wanted)]
    if not free:
        made = any(call["name"] in _tools(wanted) for call in calls)
        return f"{said}{'not called another time' if made else 'not called'}"
    misfit = _misfit(wanted, calls, free[0])
    return f"{said}call {free[0] + 1}, {_shown(calls[free[0]])}: {misfit or 'not in this order'}"


def _misfit(wanted: ExpectedCall | Alternatives, calls: Calls, place: int, *, believing: bool = False) -> str | None:
    """Why a call is not the one expected; None where it is."""
    if isinstance(wanted, Alternatives):
        found = [_misfit(one, calls, place, believing=believing) for one in wanted.any_of]
        return None if None in found else "; ".join(dict.fromkeys(why for why in found if why))
    call = calls[place]
    if call["name"] != wanted.tool:
        return f"must call {wanted.tool}"
    before = {one["name"] for one in calls[:place] if one.get("error") is None}
    if missing := [name for name in wanted.after if name not in before]:
        return f"must come after {', '.join(missing)}"
    if wanted.arguments is None:
        return None
    if "arguments" not in call:
        return None if believing else "its arguments are not in the trace"
    return _wrong(wanted.arguments, call["arguments"])


def _wrong(rules: ExpectedArguments, given: Any) -> str | None:
    if not isinstance(given, Mapping) or too_deep(given):
        return f"arguments: must be an object, got {_json(given)[:SHOWN]}"
    seen = {name: value for name, value in given.items() if name not in rules.ignored}
    if rules.exact is not None:
        if extra := sorted(seen.keys() - rules.exact.keys()):
            return f"arguments.{extra[0]}: must not be there, got {_json(seen[extra[0]])[:SHOWN]}"
        if why := _differs(rules.exact, {name: seen[name] for name in rules.exact if name in seen}, whole=True):
            return why
    if rules.subset is not None and (why := _differs(rules.subset, given, whole=False)):
        return why
    for name, pattern in (rules.regex or {}).items():
        if name not in given:
            return f"arguments.{name}: must be there, got nothing"
        text = given[name] if isinstance(given[name], str) else _json(given[name])
        if not searched(pattern, text)[0]:
            return f"arguments.{name}: must match {pattern}, got {text[:SHOWN]!r}"
    if rules.json_schema is not None:
        found = _checker(_json(rules.json_schema)).check({"arguments": seen})
        if found.score != 1.0:
            return f"arguments: {found.reason}"
    return None


def _differs(wanted: Mapping[str, Any], given: Mapping[str, Any], *, whole: bool, way: str = "arguments") -> str | None:
    """Where an object is another than wanted. Numbers are alike by their value, and true is no number."""
    for name, value in wanted.items():
        place = f"{way}.{name}"
        if name not in given:
            return f"{place}: must be {_json(value)[:SHOWN]}, got nothing"
        if not whole and isinstance(value, Mapping) and isinstance(given[name], Mapping):
            if why := _differs(value, given[name], whole=False, way=place):
                return why
        elif not _equal(value, given[name]):
            return f"{place}: must be {_json(value)[:SHOWN]}, got {_json(given[name])[:SHOWN]}"
    return None


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(value, other[name]) for name, value in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


@lru_cache(maxsize=256)
def _checker(schema: str) -> Checker:
    """Raises ValueError for a schema that can't be used."""
    return Checker(Check(field="arguments", json_schema="arguments"), json.loads(schema))


def _tools(wanted: ExpectedCall | Alternatives) -> set[str]:
    return {one.tool for one in (wanted.any_of if isinstance(wanted, Alternatives) else (wanted,))}


def _named(wanted: ExpectedCall | Alternatives) -> str:
    return " or ".join(one.tool for one in (wanted.any_of if isinstance(wanted, Alternatives) else (wanted,)))


def _shown(call: Mapping[str, Any]) -> str:
    return f"{call['name']}({_json(call['arguments'])[:SHOWN]})" if "arguments" in call else str(call["name"])


def _json(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)
