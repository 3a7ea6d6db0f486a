"""Which traces a judge fires on (PC5 §5.2, PF-9 FR-5)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from schemas.files import FileModel, Text


class Operator(StrEnum):
    """Of a trace filter. `=` and `equals` are one operator; so are `==` and `eq`."""

    EQUALS = "="
    NOT_EQUALS = "!="
    CONTAINS = "contains"
    NOT_CONTAINS = "not_contains"
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    GREATER = ">"
    AT_LEAST = ">="
    LESS = "<"
    AT_MOST = "<="
    IN = "in"
    MATCHES = "matches"
    IS_EMPTY = "is_empty"
    IS_NOT_EMPTY = "is_not_empty"


SAME_OPERATOR: Final = {"equals": "=", "==": "=", "eq": "=", "not_equals": "!=", "ne": "!="}


def _operator(value: Any) -> Any:
    return SAME_OPERATOR.get(value.strip().lower(), value.strip().lower()) if isinstance(value, str) else value


class Filter(FileModel):
    """Which traces a judge fires on; without one, all that it applies to."""

    field: Text
    """A field of the trace, such as metadata, or a Tier-1/2 metadata key, such as sub_agent_id."""
    key: Text | None = None
    """A dotted path below the field."""
    operator: Annotated[Operator, BeforeValidator(_operator)]
    """How field and value are compared. `equals` is `=`."""
    value: Any = None
    """What the field is compared with; a list for `in`, a regular expression for `matches`, absent for `is_empty`."""
