"""Names that are not in the registry, each with the one that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

from evalcore.near import near_miss


class Unknown(KeyError):
    kind = "name"

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        """`known` is every name there is."""
        super().__init__(name)
        self.name = name
        self.hint = near_miss(str(name), known)

    def __str__(self) -> str:
        return f"no {self.kind} {self.name!r}{self.hint}"


class UnknownJudge(Unknown):
    """No judge of that id."""

    kind = "judge"


class UnknownCategory(Unknown):
    """No category of that name."""

    kind = "category"


class UnknownArchetype(Unknown):
    """No archetype of that name in the manifest."""

    kind = "archetype"
