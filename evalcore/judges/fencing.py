"""Fills a judge's prompt so that the text of a trace stays data: it can't close the tags around it. Pure.

A judge's prompt puts each variable between tags and tells the model to judge what is between them, never to follow it.
That only holds if the text can neither end its tag nor look like another speaker's turn. Both are therefore escaped, so
that the model still reads them and they mean nothing: `</agent_output>` in a text becomes `&lt;/agent_output>`.

A model takes `＜/аgent＿output›` for the tag that it resembles, whatever its code points. Tags are therefore searched
for in a plain copy of the text, in which each character has its plainest form: one character, except for those that
read as several letters (`ﬆ`). The places of what is found there are then mapped back to the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

UNSEEN: Final = "\u200b"
"""Replaces every character that shows nothing."""
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
"""Unicode category -> plain form. A symbol before a name reads as the bullet of a list."""


class _Plain(dict[int, str]):
    """A translation table that is filled on use: texts use few of all characters."""

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
    """Returns, for each place of the folded text, the place of its character in the text."""
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


_PLACE = re.compile(r"\{\{\s*(?P<double>[A-Za-z_][\w-]*)\s*\}\}|(?<!\{)\{(?P<single>[A-Za-z_][\w-]*)\}(?!\})")
_TAG = re.compile(r"</\s*([A-Za-z_][\w.-]*)\s*>")
_OPENED = re.compile(r"<([A-Za-z_][\w.-]*)>\s*\Z")
_GAP = rf"[\s\x00-\x1f\x7f{UNSEEN}]*+"
"""A gap. It is possessive, so that a text made of gaps costs no more than another."""
_BETWEEN = rf"[\s\x00-\x1f\x7f{UNSEEN}_.-]*+"
"""What may separate the letters of a name."""
_SMUGGLED = re.compile("[\U000e0000-\U000e0fff]")
"""Tags of Unicode and its far variation selectors: invisible letters that models read."""
_ROLES = ("system", "developer", "assistant", "human", "user")


def _any_of(*names: str) -> str:
    """Returns a pattern for the names, also with invisible characters among the letters."""
    return f"(?:{'|'.join(f'{UNSEEN}*+'.join(name) for name in names)})"


_TURNS = _any_of(
    *("s", "bos", "eos", "start_of_turn", "end_of_turn", "im_start", "im_end", "im_sep", "endoftext", "eot_id"),
    *("start_header_id", "end_header_id", "begin_of_text", *_ROLES),
)
_PARTS = _any_of("INST", "SYSTEM_PROMPT", "AVAILABLE_TOOLS", "TOOL_CALLS", "TOOL_RESULTS", "TOOL_CONTENT", "gMASK")
_SIGNS = re.compile(
    rf"<(?=[\s\x00-\x1f\x7f{UNSEEN}_-]*+\|)|<(?={_GAP}/?{_GAP}{_TURNS}{_GAP}>)|<(?=<?/?{_any_of('SYS')}>>)"
    rf"|\[(?={UNSEEN}*+/?{UNSEEN}*+{_PARTS}{UNSEEN}*+\])",
    re.IGNORECASE,
)
"""Separators of turns in chat templates; a server may take them for such also within a message."""
_ROLE = rf"{_any_of(*_ROLES)}(?:\s+(?:prompt|message|note|instructions?))?"
_LED = rf"(?:{_GAP}(?:[#>*_~(\[|`+-]|\d++[.)]))*+{_GAP}"
_CLOSED = rf"{_GAP}(?:[*_~)\]|`]{_GAP})*+"
_BOLD = rf"{_GAP}(?:[*_~`]{_GAP})*+"
_SPEAKER = re.compile(
    rf"(?=[\s\x00-\x1f\x7f{UNSEEN}#>*_~()\[\]|`+.\d-]*+[sdahuir:])(?:"  # which most lines fail, and cheaply
    rf"{_LED}{_ROLE}{_CLOSED}:"
    rf"|{_GAP}#+{_GAP}(?:{_ROLE}|instructions?|response)\W*$"
    rf"|(?:{_GAP}(?:[#>*_~(|`+-]|\d++[.)]))*+{_GAP}\[{_BOLD}{_ROLE}{_BOLD}\]"
    rf"|(?P<colon>{_CLOSED}:))",
    re.IGNORECASE,
)
"""Begins a line in a speaker's name, also as a heading, the bullet of a list or in brackets; or begins with the colon
of a name in a line above."""
_ALONE = re.compile(rf"{_LED}{_ROLE}{_CLOSED}", re.IGNORECASE)
_EMPTY = re.compile(_CLOSED)
QUOTED = "> "
SHARED = 16_384
"""Longest text, in characters, whose escaped form is cached."""


def fill(prompt: str, values: Mapping[str, str]) -> str:
    """Replaces each `{{name}}` or `{name}` of the prompt by its value in one pass, so that braces in a value, and names
    that are no variable, stay as they are. A value that the prompt does not put between tags gets tags of its name."""
    places, tags = _places(prompt, frozenset(values))
    texts = {name: inert(values[name], tags) for name in {name for _, _, name, _ in places}}
    out: list[str] = []
    at = 0
    for start, end, name, fenced in places:
        out += (prompt[at:start], texts[name] if fenced else f"<{name}>\n{texts[name]}\n</{name}>")
        at = end
    return "".join(out) + prompt[at:]


def inert(text: str, tags: frozenset[str]) -> str:
    """Returns the text, escaped so that it can't open or close one of `tags`, begin another speaker's turn, or hide
    text from a reader. All else stays as it is, other markup too."""
    return _shared(text, tags) if len(text) <= SHARED else _inert(text, tags)


def _inert(text: str, tags: frozenset[str]) -> str:
    if not text.isascii():
        text = text.encode(errors="replace").decode()  # half a surrogate pair can't be sent
        text = _SMUGGLED.sub("\ufffd", text)
    plain = folded(text)
    written = _speakers(plain) | _signs(plain, tags)
    if written and len(plain) != len(text):
        places = origins(text)
        written = {places[at]: sign for at, sign in written.items()}
    out: list[str] = []
    at = 0
    for place in sorted(written):
        out += (text[at:place], written[place])
        at = place + (written[place] != QUOTED)
    return "".join(out) + text[at:]


_shared = lru_cache(maxsize=256)(_inert)
"""Several judges read the same text of an item, one after the other."""


def _signs(plain: str, tags: frozenset[str]) -> dict[int, str]:
    """Returns place -> replacement of the characters that begin a tag or a separator of turns."""
    if "<" not in plain and "[" not in plain:
        return {}
    patterns = (_any_tag(tags), _SIGNS) if "<" in plain else (_SIGNS,)
    places = (found.start() for pattern in patterns for found in pattern.finditer(plain))
    return {place: "&#91;" if plain[place] == "[" else "&lt;" for place in places}


def _speakers(plain: str) -> dict[int, str]:
    """Returns place -> quotation mark of the lines that begin in a speaker's name."""
    found: dict[int, str] = {}
    at = 0
    if ":" in plain or "#" in plain or "[" in plain:
        lines = plain.splitlines(keepends=True)
        for number, line in enumerate(lines):
            if (":" in line or "#" in line or "[" in line) and (begun := _SPEAKER.match(line)):
                place = at if begun["colon"] is None else _named_above(lines, number, at)
                if place is not None:
                    found[place] = QUOTED
            at += len(line)
    return found


def _named_above(lines: list[str], number: int, at: int) -> int | None:
    """Returns the place of the name to which the colon of this line belongs, though empty lines are between them. It
    looks back to the last line that is not empty, so all colons of a text together look at each line once."""
    while number:
        number -= 1
        at -= len(lines[number])
        if not _EMPTY.fullmatch(lines[number]):
            return at if _ALONE.fullmatch(lines[number]) else None
    return None


@lru_cache(maxsize=512)
def _places(prompt: str, names: frozenset[str]) -> tuple[list[tuple[int, int, str, bool]], frozenset[str]]:
    """Returns where values go, as (start, end, name, whether the prompt fences it), and the tags that fence them."""
    places = []
    for found in _PLACE.finditer(prompt):
        name = found["double"] or found["single"]
        if name in names:
            places.append((found.start(), found.end(), name, _fenced(prompt, found.start(), found.end())))
    own = {name for _, _, name, fenced in places if not fenced}
    return places, frozenset(_TAG.findall(prompt)) | own


@lru_cache(maxsize=512)
def _any_tag(tags: frozenset[str]) -> re.Pattern[str]:
    """Returns a pattern for the beginning of these tags, opened or closed, however spaced, capitalized or split."""
    if not tags:
        return re.compile(r"(?!)")
    names = "|".join(map(_name, sorted(tags, key=len, reverse=True)))
    return re.compile(rf"<(?=(?:{_BETWEEN}[/\\])*+{_BETWEEN}(?:{names})(?![_-]*+[^\W_]))", re.IGNORECASE)


def _name(tag: str) -> str:
    """Returns a pattern for a tag's name in any joining: `agent-output` and `a.g.e.n.t.o.u.t.p.u.t` for
    `agent_output`."""
    return _BETWEEN.join(re.escape(letter) for letter in tag if letter.isalnum())


def _fenced(prompt: str, start: int, end: int) -> bool:
    """Tells whether the variable is alone between an opening tag and its closing one."""
    opened = _OPENED.search(prompt, max(0, start - 80), start)
    return opened is not None and re.match(rf"\s*</{re.escape(opened[1])}>", prompt[end : end + 80]) is not None
