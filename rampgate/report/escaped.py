"""Escapes one line of text for a page and for Markdown. Pure."""

from __future__ import annotations

import html
import re
from typing import Final

from schemas.dead_letters import clean

LONGEST: Final = 2_000
"""Characters of one text."""
_MARKS: Final = re.compile(r"([\\`*_{}\[\]()#+!|~])")


def in_html(raw: str) -> str:
    return html.escape(clean(raw, LONGEST))


def in_markdown(raw: str) -> str:
    """The text escaped for Markdown: nothing in it marks up, ends a table cell or mentions a user."""
    escaped = _MARKS.sub(r"\\\1", html.escape(clean(raw, LONGEST), quote=False))
    return escaped.replace("@", "&#64;")
