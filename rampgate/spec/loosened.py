"""Names what a spec asserts less of than an earlier version of it: `rampgate spec test --base`. Pure.

Both are compared as they hold, with defaults and includes merged in: what a default loosens is named at each query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evalcore.specs.results import FieldPath
from evalcore.specs.rubric import rubrics_of
from schemas.specs import AgentSpec, GoldenQuery, Rubric

ALL_REQUIRED: Final = ("expected_in_answer", "not_in_answer", "expected_tools", "forbidden_tools")
"""Lists of which each item asserts something."""
ALLOWED: Final = ("expected_handoff", "expected_handoffs_available")
"""Lists of what may be: one more asks for less."""
RUBRICS: Final = ("llm_judge", "safety_check", "hallucination_check")
STRICTER: Final = {
    "unordered": {"strict"}, "subset": {"strict", "unordered"}, "superset": {"strict", "unordered"},
}  # fmt: skip
"""Match modes that ask for more than one."""
REMOVED, CHANGED = "is removed", "is another, so that it may ask for less"


@dataclass(frozen=True)
class Loosened:
    """An assertion that asks for less, or may. `field` is its path below the query; empty: the query itself."""

    id: str
    query: str
    field: FieldPath
    words: str

    def told(self) -> dict[str, str]:
        return {"id": self.id, "query": self.query, "field": ".".join(map(str, self.field)), "words": self.words}


def loosened(before: AgentSpec, after: AgentSpec) -> list[Loosened]:
    """Returns what `after` asserts less of than `before`, in the queries' order. A query is the same one by its id,
    which is its text's hash where it has none."""
    now = {one.id: one for one in after.queries}
    found = []
    for old in before.queries:
        new = now.get(old.id)
        if new is None:
            found.append(Loosened(str(old.id), old.query, (), f"the query {REMOVED}"))
            continue
        told = [*_of_query(old, new), *_blocking({*before.fail_on, *old.fail_on}, {*after.fail_on, *new.fail_on})]
        if (old.baseline or before.baseline) not in (None, new.baseline or after.baseline):
            told.append((("baseline",), CHANGED))
        if _judges(before) != _judges(after) and any(rubrics_of(old.correctness)):
            told.append((("correctness", "llm_judge"), f"its judges' model {CHANGED}"))
        found += [Loosened(str(old.id), old.query, field, words) for field, words in told]
    return found


def _of_query(old: GoldenQuery, new: GoldenQuery) -> Iterator[tuple[FieldPath, str]]:
    if old.query != new.query:
        yield ("query",), CHANGED
    for layer in ("correctness", "path", "cost"):
        was, now = getattr(old, layer), getattr(new, layer)
        for name in type(was).model_fields if was is not None else ():
            value, other = getattr(was, name), getattr(now, name, None)
            if value is not None and value != other:
                yield from (((layer, name, *inner), words) for inner, words in _of_field(name, value, other))
        if layer == "correctness" and was is not None and not was.substrings and getattr(now, "substrings", None):
            yield (layer, "substrings"), "terms are found within words, too"


def _of_field(name: str, was: Any, now: Any) -> Iterator[tuple[FieldPath, str]]:
    """What a field asks less of, by its path below itself."""
    if name in RUBRICS:
        yield from _of_rubrics(_listed(was), _listed(now))
    elif now is None:
        yield (), REMOVED
    elif name in ALL_REQUIRED:
        yield from (((), f"{item!r} {REMOVED}") for item in was if item not in now)
        if name == "expected_tools" and not was:  # no tool might be called
            yield (), CHANGED
    elif name in ALLOWED:
        yield from (((), f"{item!r} may be, too") for item in _listed(now) if item not in _listed(was))
    elif name.startswith(("max_", "min_")):
        if now > was if name.startswith("max_") else now < was:
            yield (), f"{was} → {now}"
    elif name == "match_mode":
        if now not in STRICTER.get(was, ()):
            yield (), f"{was} → {now}"
    elif name != "substrings":
        yield (), CHANGED


def _of_rubrics(was: Sequence[Rubric], now: Sequence[Rubric]) -> Iterator[tuple[FieldPath, str]]:
    known = {_name(one): one for one in now}
    for one in was:
        name = _name(one)
        new = known.get(name)
        if new is None:
            yield (), f"the rubric {name[:100]!r} {REMOVED}"
        elif new.threshold < one.threshold:
            yield (), f"the rubric {name[:100]!r}: threshold {one.threshold} → {new.threshold}"
        elif new.model_copy(update={"threshold": one.threshold}) != one:
            yield (), f"the rubric {name[:100]!r} {CHANGED}"


def _blocking(was: set[Any], now: set[Any]) -> Iterator[tuple[FieldPath, str]]:
    yield from ((("fail_on",), f"{name} no longer blocks") for name in sorted(was - now))


def _judges(spec: AgentSpec) -> Mapping[str, Any]:
    return spec.judge_config.model_dump() if spec.judge_config is not None else {}


def _name(rubric: Rubric) -> str:
    return rubric.id or rubric.rule


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (tuple, list)) else [value]
