"""Bytes of a configuration file as text: UTF-8 without a byte order mark, of a sensible size, printable."""

from __future__ import annotations

import codecs
import re
from typing import Final

from evalcore.problems import Problem

MAX_BYTES: Final = 1_000_000
CLAUSE: Final = "PC5 FR-9"
_WIDE_MARKS: Final = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What YAML 1.2 §5.1 does not allow in a stream; line breaks that editors don't count; marks that show a text in another
# order than a model reads it; a byte order mark that is not at the start.
UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_BREAK: Final = re.compile("\r\n|\r|\n")


def place(before: str) -> tuple[int, int]:
    """Line and column, from 1, of what follows `before`."""
    breaks = [found.end() for found in _BREAK.finditer(before)]
    return len(breaks) + 1, len(before) - (breaks[-1] if breaks else 0) + 1


def decode(file: str, raw: bytes) -> tuple[str, list[Problem], bool]:
    """The text, what is wrong with it, and whether it is whole.

    Where it is not whole, the text is what stands before the first thing that can't be read.
    """
    if len(raw) > MAX_BYTES:
        size = f"larger than {MAX_BYTES:,} bytes; a configuration file is a few pages at most"
        fix = "split the file, or look whether something else was saved under this name"
        return "", [Problem(file, 1, 1, "", "file-too-large", size, CLAUSE, fix)], False
    if raw.startswith(_WIDE_MARKS):
        fix = "save the file as UTF-8"
        return "", [Problem(file, 1, 1, "", "not-utf8", "is UTF-16 or UTF-32, not UTF-8", CLAUSE, fix)], False
    problems: list[Problem] = []
    whole = True
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        whole = False
        text = raw[: error.start].decode("utf-8")
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        fix = "save the file as UTF-8; a rule file is text, not a binary file"
        problems.append(Problem(file, *place(text), "", "not-utf8", message, CLAUSE, fix))
    if text.startswith("\ufeff"):
        text = text[1:]
        message = "begins with a byte order mark"
        problems.append(
            Problem(file, 1, 1, "", "byte-order-mark", message, CLAUSE, "save the file as UTF-8 without a BOM")
        )
    if (found := UNPRINTABLE.search(text)) is not None:
        whole = False
        code = f"U+{ord(found.group()):04X}"
        text = text[: found.start()]
        message = f"holds the character {code}, which is invisible or no text; is this a binary file?"
        fix = f"remove the character {code}"
        problems = [found_before for found_before in problems if found_before.check != "not-utf8"]
        problems.append(Problem(file, *place(text), "", "unprintable-character", message, CLAUSE, fix))
    return text, problems, whole
