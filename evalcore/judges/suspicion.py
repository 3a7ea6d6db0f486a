"""Tells what in a turn looks as if it were written for the judge, so that somebody can count it. Pure.

Nothing is changed or refused for it: texts stay in their place by the form of the messages (`evalcore.framing`), and a
list of patterns never ends. A person reads `а＿Ｓystem` as it looks; so texts are folded before they are searched.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

WINDOW: Final = 8_192
"""Characters that are searched at each end of a text."""
_ALIKE: Final = str.maketrans({
    **dict(zip("аеорсухіјѕһԁԛԝвкмнтαοντικρυχεηβ", "aeopcyxijshdqwbkmhtaovtikpuxenb", strict=True)),
    **dict.fromkeys("‹〈⟨《⟪❮❬❰ᐸ˂≪«", "<"),
    **dict.fromkeys("›〉⟩》⟫❯❭❱ᐳ˃≫»", ">"),
    **dict.fromkeys("⁄∕⧸╱", "/"),
    **dict.fromkeys("∶ː꞉։︰", ":"),
    **dict.fromkeys("【〔", "["),
    **dict.fromkeys("】〕", "]"),
})  # fmt: skip
_SPEAKERS: Final = (
    "system|developer|assistant|human|sistema|asistente|assistente|systeme|systemnachricht|систем[аы]?|cиctem[aы]?|"
    "系统|系統|助手|システム|시스템|النظام|प्रणाली"
)
_PATTERNS: Final = {
    "delimiter": re.compile(
        r"\b(?:begin|end)[ _]{1,3}turn\b|</?[\s/\\]{0,4}(?:user_?input|agent_?output|input|output|turn|tool_?calls?|"
        r"expected_?output|reference_?answer)\b"
    ),
    "role": re.compile(
        rf"^[^\w\n]{{0,8}}(?:{_SPEAKERS})(?: (?:prompt|message|note|instructions?))?[^\w\n]{{0,4}}:|"
        rf'"role"\s{{0,4}}:\s{{0,4}}"(?:{_SPEAKERS})"',
        re.MULTILINE,
    ),
    "heading": re.compile(
        r"^[^\w\n]{0,4}#{1,6}[^\w\n]{0,4}(?:system|instructions?|response|scores?|what counts|not applicable|the turn|"
        r"your answer|how the turn)\b",
        re.MULTILINE,
    ),
    "answer": re.compile(r'\\{0,4}"score\\{0,4}"\s{0,4}:\s{0,4}\\{0,4}"?(?:-?\d|true|false|n/a)'),
    "separator": re.compile(r"<\|[^|>\n]{1,40}\|?>?|\[/?inst\]|<</?sys>>|</?s>|<(?:start|end)_of_turn>"),
    "unseen": re.compile("[\U000e0001-\U000e007f]"),
}
SUSPICIONS: Final = tuple(_PATTERNS)
"""An imitation of a delimiter, a speaker, a heading of a rubric, a ready answer or a chat template's separator; letters
that nobody sees."""


def suspected(turn: str) -> frozenset[str]:
    """Returns the kinds of imitation in a turn, as `evalcore.framing.turn_json` writes it."""
    return frozenset(kind for text in _texts(json.loads(turn)) for kind in _kinds(text))


def _texts(value: Any) -> Iterator[str]:
    """Yields both ends of each text."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value[:WINDOW]
        if len(value) > WINDOW:
            yield value[max(WINDOW, len(value) - WINDOW) :]


@lru_cache(maxsize=256)
def _kinds(text: str) -> frozenset[str]:
    """Kept for a while: several judges read the same turn."""
    plain = _folded(text)
    return frozenset(kind for kind, pattern in _PATTERNS.items() if pattern.search(plain if kind != "unseen" else text))


def _folded(text: str) -> str:
    """Returns the text as it looks: in small plain letters, without marks and what shows nothing."""
    if not text.isascii():
        text = "\n".join(unicodedata.normalize("NFKD", text).splitlines())
        text = "".join([one for one in text if one.isascii() or unicodedata.category(one) not in ("Mn", "Me", "Cf")])
    return text.replace("\r", "\n").casefold().translate(_ALIKE)
