"""How a text reads to somebody who does not look closely, place by place. Pure.

A model takes `＜/аgent＿output›` for the tag that it resembles, whatever its code points. So tags are looked for in
what is made here: each character in its plainest form, which is one character but for those that read as several
letters (`ﬆ`). What is found there is brought back to its place in the text. The text is not touched.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

UNSEEN: Final = "\u200b"
"""What stands for every character that shows nothing of its own."""
_CHEROKEE = "ᎪᎯᏏᏰᏴᏟᏨᎠᏧᎬᏋᎴᎶᏀᏳᎻᏂᎥᎫᏠᏦᏝᏞᎷᏁᎤᎧᎾᎮᏢᎡᏒᏕᏚᎢᏖᏌᏬᏉᏙᎳᏇᏔᏊᎩᎽᏃ"


def _pairs(letters: str, read_as: str) -> dict[str, str]:
    return dict(zip(letters, read_as, strict=True))


_ALIKE = {
    **dict.fromkeys("‹〈⟨《⟪❮❬❰⪡⧼ᐸ˂⋖≪«≺", "<"),
    **dict.fromkeys("›〉⟩》⟫❯❭❱⪢⧽ᐳ˃⋗≫»≻", ">"),
    **dict.fromkeys("⁄∕⧸╱⟋〳", "/"),
    **dict.fromkeys("⧹╲⟍∖", "\\"),
    **dict.fromkeys("ǀ∣│┃￨❘¦", "|"),
    **dict.fromkeys("∶ː꞉։⁚׃︰ꓽ˸፡∷", ":"),
    **dict.fromkeys("【〔⟦〚", "["),
    **dict.fromkeys("】〕⟧〛", "]"),
    **dict.fromkeys("•‣·∙⁃→⇒", "*"),
    "▁": "_",
    "ß": "ss",
    "ẞ": "SS",
    **_pairs("аеорсухіјѕһԁӏԛԝАВЕКМНОРСТУХІЈЅ", "aeopcyxijshdlqwABEKMHOPCTYXIJS"),
    **_pairs("вкмнтгпиьєѡѵԍҫԌԚԜѴ", "bkmhtrnubewvgcGQWV"),
    **_pairs("αοντικρυχϲΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aovtikpuxcABEZHIKMNOPTYX"),
    **_pairs("βγδεζηθμπσςωϳΔΘΛΠΣϹͿ", "bydeznounoswjAOANECJ"),
    **_pairs("օսոհզցɑɡ", "ounhqgag"),
    **_pairs("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrstuvwyz"),
    **_pairs("łđøħŧɨıȷƚɇɉɍɏƀǥⱥⱦȼʉŉẚ", "ldohtiijlejrybgatcuna"),
    **_pairs("ɛɩʋɯŋɲɳƞɱɵʂƨƭʈɖɗɓɠƴɾɽƥɦ", "eiuwnnnnmossttddbgyrrph"),
    **_pairs("ꓮꓐꓚꓓꓰꓝꓖꓧꓲꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ", "ABCDEFGHIJKLMNOPRSTUVWXYZ"),
    **_pairs(_CHEROKEE + _CHEROKEE.lower(), "aabbbccddeefggghhijjkllmnooopprrssttuuvvwwwxyyz" * 2),
    **{chr(first + at): chr(65 + at) for first in (0x1F150, 0x1F170, 0x1F1E6) for at in range(26)},  # 🅐 🅰 🇦
    **dict.fromkeys("\u115f\u1160\u3164\uffa0\u2800", UNSEEN),
    **dict.fromkeys("\x85\u2028\u2029", "\n"),
}
_KINDS = {**dict.fromkeys(("Cf", "Mn", "Me", "Cc", "Cn", "Co"), UNSEEN), "Zs": " ", "Pd": "-", "Pc": "_", "So": "*"}
"""By the category of Unicode. A sign before a name is as the point of a list."""


class _Plain(dict[int, str]):
    """Made as it is asked for: texts use few of all characters."""

    def __missing__(self, code: int) -> str:
        found = self[code] = chr(code) if code < 128 else _plain(chr(code))
        return found


_PLAIN = _Plain()


@lru_cache(maxsize=32)
def folded(text: str) -> str:
    """At least as long as the text, longer only where a character reads as several letters. Kept for a while: several
    judges read the same turn."""
    return text if text.isascii() else text.translate(_PLAIN)


def origins(text: str) -> list[int]:
    """For each place of the folded text, the place of the character that stands there."""
    return [at for at, character in enumerate(text) for _ in _PLAIN[ord(character)]]


def _plain(character: str) -> str:
    if character in _ALIKE:
        return _ALIKE[character]
    letters = unicodedata.normalize("NFKD", character)
    base = "".join(one for one in letters if unicodedata.category(one) != "Mn") or letters[0]
    if len(base) > 1 and base.isascii():
        # Signs alone (`…`) are as good as the first of them, and keep common texts at their length.
        return base if any(map(str.isalnum, base)) else base[0]
    first = base if len(base) == 1 else character
    return _ALIKE.get(first) or (first if first.isascii() else _KINDS.get(unicodedata.category(first), first))
