"""Bounds how deep JSON of others is nested: readers take a thousand levels, writers some 250. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEEPEST: Final = 100
"""Levels of lists and objects; what is written has some of ours around it."""
TOO_DEEP: Final = f"is nested deeper than {DEEPEST} levels"


def too_deep(value: object, levels: int = DEEPEST) -> bool:
    """Tells whether lists and objects lie in one another on more levels."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return levels < 0 or any(too_deep(one, levels - 1) for one in inner if isinstance(one, (Mapping, list)))
