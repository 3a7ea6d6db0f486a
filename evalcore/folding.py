"""How a text reads to somebody who does not look closely, place by place. Pure.

A model takes `＜/аgent＿output›` for the tag that it resembles, whatever its code points. So tags are looked for in
what is made here: as long as the text, each character at its place, in its plainest form. The text is not touched.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

UNSEEN: Final = "\u200b"
"""What stands for every character that shows nothing of its own."""
_ALIKE = {
    **dict.fromkeys("‹〈⟨《⟪❮❬❰⪡⧼ᐸ˂⋖≪«≺", "<"),
    **dict.fromkeys("›〉⟩》⟫❯❭❱⪢⧽ᐳ˃⋗≫»≻", ">"),
    **dict.fromkeys("⁄∕⧸╱⟋〳", "/"),
    **dict.fromkeys("⧹╲⟍∖", "\\"),
    **dict.fromkeys("ǀ∣│┃￨❘", "|"),
    **dict.fromkeys("∶ː꞉։", ":"),
    **dict(zip("аеорсухіјѕһԁӏԛԝАВЕКМНОРСТУХІЈЅ", "aeopcyxijshdlqwABEKMHOPCTYXIJS", strict=True)),
    **dict(zip("αοντικρυχϲΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aovtikpuxcABEZHIKMNOPTYX", strict=True)),
    **dict(zip("օսոհզցɑɡʟ", "ounhqgagl", strict=True)),
    **dict.fromkeys("\u115f\u1160\u3164\uffa0\u2800", UNSEEN),
    **dict.fromkeys("\x85\u2028\u2029", "\n"),
}
_KINDS = {**dict.fromkeys(("Cf", "Mn", "Me", "Cc", "Cn", "Co"), UNSEEN), "Zs": " ", "Pd": "-", "Pc": "_"}
"""By the category of Unicode."""


class _Plain(dict[int, str]):
    """Made as it is asked for: texts use few of all characters."""

    def __missing__(self, code: int) -> str:
        found = self[code] = chr(code) if code < 128 else _plain(chr(code))
        return found


_PLAIN = _Plain()


@lru_cache(maxsize=32)
def folded(text: str) -> str:
    """Kept for a while: several judges read the same turn."""
    return text if text.isascii() else text.translate(_PLAIN)


def _plain(character: str) -> str:
    if character in _ALIKE:
        return _ALIKE[character]
    letters = unicodedata.normalize("NFKD", character)
    first = letters[0]
    if not all(unicodedata.category(mark) == "Mn" for mark in letters[1:]):
        first = character
    return _ALIKE.get(first) or (first if first.isascii() else _KINDS.get(unicodedata.category(first), first))
