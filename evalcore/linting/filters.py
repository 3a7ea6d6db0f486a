"""Filters say which traces a judge fires on; one that can't match switches its judge off unseen (PC5 §5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

from evalcore.corpus import Corpus
from evalcore.linting import Find, check
from evalcore.near import near_miss
from evalcore.problems import Problem, Severity
from schemas.judges import Filter, Operator

CLAUSE = "PC5 §5.2"
METADATA = frozenset(
    [
        "user_id",
        "session_id",
        "environment",
        "agent_id",
        "agent_version",
        "vertical",
        "sub_agent",
        "sub_agent_id",
        "prompt_version",
        "category",
        "experiment_id",
        "arm",
        "response_id",
    ]
)
FIELDS = METADATA | {
    "metadata",
    "input",
    "output",
    "name",
    "tags",
    "thread_id",
    "usage",
    "tool_calls",
    "trace_id",
    "project_name",
    "started_at",
    "ended_at",
}
_NO_VALUE = (Operator.IS_EMPTY, Operator.IS_NOT_EMPTY)
_NUMBERS = (Operator.GREATER, Operator.AT_LEAST, Operator.LESS, Operator.AT_MOST)
_TEXTS = (Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.MATCHES, Operator.CONTAINS, Operator.NOT_CONTAINS)


def unfit(filter_: Filter) -> str | None:
    """Why the value does not fit the operator; None when it does."""
    operator, value = filter_.operator, filter_.value
    if operator in _NO_VALUE:
        return None if value is None else f"{operator} takes no value"
    if value is None:
        return f"{operator} needs a value"
    if operator is Operator.IN:
        if not isinstance(value, list) or not value or not all(map(_plain, value)):
            return "in needs a list of at least one text or number"
        return None
    if operator in _NUMBERS:
        return None if _is_number(value) else f"{operator} needs a number"
    if operator in _TEXTS:
        return None if isinstance(value, str) and value.strip() else f"{operator} needs a text"
    if isinstance(value, str) and (not value or value != value.strip()):
        return f"{operator} needs a text without space around it" if value.strip() else f"{operator} needs a text"
    return None if _plain(value) else f"{operator} needs a text, a number, true or false"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _plain(value: Any) -> bool:
    return isinstance(value, (str, bool)) or _is_number(value)


@check(
    "filter-value-fits",
    CLAUSE,
    "The value of a filter is of the kind that its operator compares.",
)
def filter_value_fits(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for _, judge, rule in corpus.every_rule():
        wrong = unfit(rule.model.filter) if rule.model.filter is not None else None
        if wrong is not None:
            message = f"{wrong}; {judge} would fire on no trace, or on all"
            yield find(rule, ("filter", "value"), message, "give the value that is compared, or change the operator")


@check(
    "filter-field-is-known",
    CLAUSE,
    "A filter is about a field that traces have, and about a key of it where the field is `metadata`.",
    Severity.WARNING,
)
def filter_field_is_known(corpus: Corpus, find: Find) -> Iterator[Problem]:
    for _, _, rule in corpus.every_rule():
        filter_ = rule.model.filter
        if filter_ is None:
            continue
        if filter_.field not in FIELDS:
            message = f"traces have no field {filter_.field!r}{near_miss(filter_.field, FIELDS)}"
            fix = "name a field of the trace, or `field: metadata` and a key"
            yield find(rule, ("filter", "field"), message, fix)
        elif filter_.field == "metadata" and filter_.key is None:
            message = "metadata as a whole is compared with a value"
            yield find(rule, ("filter",), message, "add `key:`, such as agent_id")
        elif filter_.field == "metadata" and filter_.key not in METADATA:
            hint = near_miss(filter_.key or "", METADATA)
            if hint:
                message = f"no trace has {filter_.key!r} in its metadata unless somebody adds it{hint}"
                yield find(rule, ("filter", "key"), message, "name a key that tracing attaches")


CHECKS = (filter_value_fits, filter_field_is_known)
