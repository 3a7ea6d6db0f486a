"""The tool calls that a spec expects of an agent, with their arguments (`path.expected_calls`)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Discriminator, Field, StrictStr, Tag, model_validator

from schemas.files import FileModel, Text

Pattern = Annotated[StrictStr, Field(min_length=1, max_length=200)]


class Order(StrEnum):
    """Where expected calls stand among those made; each takes a call of its own."""

    ANY = "any"
    """Anywhere."""
    IN_ORDER = "in_order"
    """One after another; others may lie between."""
    STRICT = "strict"
    """One after another, and no other call is made."""


class ExpectedArguments(FileModel):
    """What a call's arguments have to be; all that is written holds. Left out: any arguments."""

    exact: dict[str, Any] | None = None
    """All arguments, those of `ignored` aside, with their values."""
    subset: dict[str, Any] | None = None
    """These among others, at every depth; a list is compared whole."""
    regex: dict[str, Pattern] | None = None
    """By argument, a pattern (RE2) that is found in its text; of what is no text, in its JSON."""
    json_schema: dict[str, Any] | None = None
    """A JSON Schema (2020-12) of all arguments."""
    ignored: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    """Arguments that `exact` and `json_schema` do not see, such as a request's id."""

    @model_validator(mode="after")
    def _asks_for_something(self) -> ExpectedArguments:
        if self.exact is not None and self.subset is not None:
            raise ValueError("must have exact or subset, got both; subset asks for a part of what exact asks for")
        if self.ignored and self.exact is None and self.json_schema is None:
            raise ValueError("ignored: must stand beside exact or json_schema, got it alone; leave it out")
        return self


class ExpectedCall(FileModel):
    """A call of a tool."""

    tool: Text
    """The tool's name."""
    arguments: ExpectedArguments | None = None
    """What its arguments have to be."""
    after: Annotated[tuple[Text, ...], Field(max_length=100)] = ()
    """Tools that are called before it, each without a failure."""


class Alternatives(FileModel):
    """One of several calls."""

    any_of: Annotated[tuple[ExpectedCall, ...], Field(min_length=2, max_length=20)]
    """The calls, one of which is enough."""


def _kind(one: Any) -> str:
    return (
        "alternatives" if isinstance(one, Alternatives) or (isinstance(one, dict) and "any_of" in one) else "one call"
    )


OneCall = Annotated[
    Annotated[ExpectedCall, Tag("one call")] | Annotated[Alternatives, Tag("alternatives")], Discriminator(_kind)
]
"""`any_of` says which of both is meant, so that an error names that one alone."""


class ExpectedCalls(FileModel):
    """Calls that are made, whether or not they fail, in this order."""

    order: Order = Order.ANY
    """Where they stand among the calls made."""
    calls: Annotated[tuple[OneCall, ...], Field(min_length=1, max_length=200)]
    """The calls, each of which takes one of its own among those made."""
