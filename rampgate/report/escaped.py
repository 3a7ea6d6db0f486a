"""Escapes one line of text for Markdown. Pure."""

from __future__ import annotations

import html
import re
from typing import Final

from schemas.dead_letters import clean

LONGEST: Final = 2_000
"""Characters of one text."""
_MARKS: Final = re.compile(r"([\\`*_{}\[\]()#+!|~])")
_GAP: Final = "&#8203;"
_LINKED: Final = re.compile(r"(&#64;|&#36;|\\#|GH-|(?:https?|ftp):(?=//)|www(?=\.))", re.IGNORECASE)
"""What GitHub makes a mention, a formula, an issue's or an address's link of, also where it is escaped: it looks again
at what was rendered. A space without width right behind it hides it from that look, and from nobody's eyes."""


def in_markdown(raw: str) -> str:
    """The text escaped for Markdown: nothing in it marks up, ends a table cell, mentions a user or becomes a link."""
    escaped = _MARKS.sub(r"\\\1", html.escape(clean(raw, LONGEST), quote=False))
    return _LINKED.sub(rf"\1{_GAP}", escaped.replace("@", "&#64;").replace("$", "&#36;"))
