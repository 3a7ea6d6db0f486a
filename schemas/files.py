"""What the models of configuration files are made of. Unknown fields are errors; text is text and numbers are numbers,
nothing is converted."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictFloat, StrictInt, StrictStr


class FileModel(BaseModel):
    """Docstrings of fields become descriptions in the published schema, where editors show them."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _day(value: Any) -> Any:
    if isinstance(value, datetime) or not (
        isinstance(value, date) or (isinstance(value, str) and _DAY.fullmatch(value))
    ):
        raise ValueError("a day is required, such as 2026-08-22")
    return value


Day = Annotated[date, BeforeValidator(_day)]
Text = Annotated[StrictStr, Field(min_length=1, max_length=200, pattern=r"^\S(.*\S)?$")]
"""One line without space around it: `ux_quality ` would name another judge, and nobody would see why."""
Prose = Annotated[StrictStr, Field(min_length=1, max_length=100_000, pattern=r"\S")]
Path = Annotated[
    StrictStr, Field(pattern=r"^[A-Za-z_][\w-]*(\[-?\d+\])*(\.[A-Za-z_][\w-]*(\[-?\d+\])*)*$", max_length=500)
]
"""A dotted path with list indices, negative ones too: `input.messages[-1].content`."""
Number = StrictInt | StrictFloat
