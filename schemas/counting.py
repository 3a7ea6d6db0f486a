"""Numbers with what they count, as people read them."""

from __future__ import annotations


def counted(many: float, one: str, more: str | None = None) -> str:
    """`1 pair`, `2 pairs`, `1,200 pairs`; `more` is the plural of a word that has one of its own."""
    number = f"{many:,}" if isinstance(many, int) else f"{many:g}"
    return f"{number} {one if many == 1 else more or one + 's'}"
