"""Finds terms in an answer as a reader would: whole words, whatever their case, width or spacing. Pure.

A word ends where a script with spaces ends it. Scripts without spaces (Chinese, Japanese, Thai, …) have no such place:
terms in them are found anywhere.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache, lru_cache
from typing import Final

from schemas.specs import Measure

UNSPACED: Final = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u3005-\u3007\u3040-\u30ff\u3105-\u312f\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua980-\ua9df\uaa60-\uaa7f\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Tibetan, Burmese, Khmer, Tai, Javanese, kana, bopomofo and Chinese characters."""
LAST_MARK: Final = 0x1E94A
_PLAIN: Final = str.maketrans("\u2018\u2019\u02bc", "'''")
"""Apostrophes are one."""
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
"""Unicode's `Default_Ignorable_Code_Point`, as NFKC leaves it: what shows nothing."""


def folded(text: str) -> str:
    """Returns a text without case, widths of letters, typographic apostrophes, what is unseen, and more than one space
    in a row."""
    plain = _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).casefold().translate(_PLAIN)
    plain = plain.replace("i\u0307", "i")  # what casefold makes of the Turkish capital
    return " ".join(unicodedata.normalize("NFKC", plain).split())


def has(term: str, text: str, *, whole: bool, within: bool = False) -> bool:
    """Says whether a text, `folded`, has a term: as a `whole` word or words, else from the start of a word on, or also
    `within` one."""
    wanted = _term(term)
    if within or not wanted:
        return wanted in text
    at = text.find(wanted)
    while at >= 0:
        if not _in_word(text, at) and not (whole and _in_word(text, at + len(wanted))):
            return True
        word = _word().match(text, at)  # none of its other letters begins a word
        at = text.find(wanted, max(at + 1, word.end() if word is not None else 0))
    return False


def similarity(measure: Measure, text: str, other: str) -> float:
    """Returns how near the first text comes to the other, from 0 to 1: by their words as multisets A and R,
    `token_f1` = 2·|A ∩ R| / (|A| + |R|) and `token_recall` = |A ∩ R| / |R|. Two texts without words are alike."""
    said, wanted = (Counter(_token().findall(folded(one))) for one in (text, other))
    if not said or not wanted:
        return float(not said and not wanted)
    common = (said & wanted).total()
    return common / wanted.total() if measure is Measure.TOKEN_RECALL else 2 * common / (said + wanted).total()


@lru_cache(maxsize=1024)
def _term(term: str) -> str:
    return folded(term)


def _in_word(text: str, at: int) -> bool:
    """Says whether a word goes on from the character before this place to the one at it. An underscore joins what is on
    both sides of it; at the edge of a word it is Markdown's emphasis."""
    before, after = at - 1, at
    while before >= 0 and text[before] == "_":
        before -= 1
    while after < len(text) and text[after] == "_":
        after += 1
    if before < 0 or after == len(text):
        return False
    letter = _letter()
    return letter.match(text, before) is not None and letter.match(text, after) is not None


@cache
def _letter() -> re.Pattern[str]:
    return re.compile(_classes())


@cache
def _word() -> re.Pattern[str]:
    return re.compile(f"(?:{_classes()})++")


@cache
def _token() -> re.Pattern[str]:
    return re.compile(f"(?:{_classes()})++|[{UNSPACED}]")


def _classes() -> str:
    """What words of scripts with spaces are written in: letters, digits, `_`, and marks above and below them."""
    unspaced = re.compile(f"[{UNSPACED}]")
    every = map(chr, range(0x300, LAST_MARK + 1))
    marks = "".join(one for one in every if unicodedata.category(one)[0] == "M" and not unspaced.match(one))
    return rf"[^\W{UNSPACED}]|[{marks}]"
