"""Compares the tools called with a reference, in four modes (AgentCI Step 0.5; contracts §5). Pure.

`subset` and `superset` say which calls the *reference* needs, as the document has it. LangChain's agentevals names
these two the other way round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from schemas.specs import MatchMode

SHOWN = 5
"""Names that a reason lists."""


def matches(mode: MatchMode, actual: Sequence[str], reference: Sequence[str]) -> str | None:
    """Returns why the calls do not match the reference; None where they do."""
    if mode is MatchMode.STRICT:
        return _in_order(actual, reference)
    made, wanted = Counter(actual), Counter(reference)
    missing = wanted - made if mode is not MatchMode.SUPERSET else Counter[str]()
    extra = made - wanted if mode is not MatchMode.SUBSET else Counter[str]()
    reasons = [
        f"{words}: {_listed(names)}"
        for words, names in (("not called", missing), ("called beyond the reference", extra))
        if names
    ]
    return "; ".join(reasons) or None


def _in_order(actual: Sequence[str], reference: Sequence[str]) -> str | None:
    for number, (made, wanted) in enumerate(zip(actual, reference, strict=False), start=1):
        if made != wanted:
            return f"call {number} must be {wanted}, got {made}"
    if len(actual) < len(reference):
        return f"call {len(actual) + 1} must be {reference[len(actual)]}, got none"
    if len(actual) > len(reference):
        return f"call {len(reference) + 1} must not be there, got {actual[len(reference)]}"
    return None


def _listed(names: Mapping[str, int]) -> str:
    said = [f"{name} ({count} times)" if count > 1 else name for name, count in sorted(names.items())]
    return ", ".join(said[:SHOWN]) + (f" and {len(said) - SHOWN} more" if len(said) > SHOWN else "")
