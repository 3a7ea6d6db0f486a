"""The base of models of configuration files: unknown fields are errors, and no value is converted to another type."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StrictFloat, StrictInt, StrictStr


class FileModel(BaseModel):
    """Docstrings of fields become descriptions in the published schema, where editors show them. Validators are built
    on first use: a command imports far more models than it reads."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, defer_build=True)


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _day(value: Any) -> Any:
    if isinstance(value, datetime) or not (
        isinstance(value, date) or (isinstance(value, str) and _DAY.fullmatch(value))
    ):
        raise ValueError("a day is required, YYYY-MM-DD")
    return value


def _of_these_times(day: date) -> date:
    """Days are counted from; one at the end of the calendar has no day after it."""
    if not 2000 <= day.year < 2100:
        raise ValueError("a day from 2000 to 2099 is required, YYYY-MM-DD")
    return day


Day = Annotated[date, BeforeValidator(_day), AfterValidator(_of_these_times)]
_UNSEEN = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Control characters, ends of lines, and what turns the direction of writing: a name that a reader can't trust."""
Text = Annotated[
    StrictStr,
    Field(min_length=1, max_length=200, pattern=rf"^[^\s{_UNSEEN}]([^{_UNSEEN}]*[^\s{_UNSEEN}])?$"),
]
"""One line without space around it: `ux_quality ` would name another judge, and a reader would not see why."""
Prose = Annotated[StrictStr, Field(min_length=1, max_length=100_000, pattern=r"\S")]
Path = Annotated[
    StrictStr, Field(pattern=r"^[A-Za-z_][\w-]*(\[-?\d+\])*(\.[A-Za-z_][\w-]*(\[-?\d+\])*)*$", max_length=500)
]
"""A dotted path with list indices, negative ones too: `input.messages[-1].content`."""
Number = StrictInt | StrictFloat
