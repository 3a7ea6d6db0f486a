"""Runs the regular expressions of filters with RE2 (PC5 §5.2).

A filter's pattern is applied to what users write. RE2 never backtracks: its time grows linearly with the text, whatever
the pattern, so no pattern has to be proven harmless. It takes no lookaround and no backreferences. Yet each byte may
take as many steps as the pattern's program has instructions, and counts make long programs of short patterns: the
longer the program, the less of a text is searched.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

LONGEST_PATTERN: Final = 200
LONGEST_TEXT: Final = 1_000_000
"""Bytes of a text that are searched at most; a Kafka record is smaller."""
STEPS: Final = 30_000_000
"""Instructions that a search may run at most: some tenths of a second, in which a worker does nothing else."""
MEMORY: Final = 1 << 20
"""Bytes that one compiled pattern may take."""


def refusal(pattern: str) -> str | None:
    """Returns why a pattern is refused; None when RE2 takes it."""
    if len(pattern) > LONGEST_PATTERN:
        return f"it is {len(pattern)} characters long; {LONGEST_PATTERN} are the most"
    try:
        compiled(pattern)
    except ValueError as error:
        return str(error)
    return None


def contains_match(pattern: str, text: str) -> bool:
    """Tells whether the pattern matches anywhere in what is searched of the text. Raises ValueError for a pattern that
    RE2 refuses."""
    found, _ = searched(pattern, text)
    return found


def searched(pattern: str, text: str) -> tuple[bool, bool]:
    """Tells whether the pattern matches in what is searched of the text, and whether that is all of it. Raises
    ValueError for a pattern that RE2 refuses."""
    program = compiled(pattern)
    longest = min(LONGEST_TEXT, STEPS // program.programsize)
    # A lone surrogate, which JSON allows, has no UTF-8.
    said = text[: longest + 1].encode("utf-8", "replace")
    return program.search(said[:longest]) is not None, len(said) <= longest


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Returns RE2's pattern. Raises ValueError with RE2's reason."""
    import re2  # a registry without patterns does not load the engine

    options = re2.Options()
    options.max_mem, options.log_errors = MEMORY, False
    try:
        return re2.compile(pattern.encode(), options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise ValueError(f"RE2 does not take it ({reason})") from error
