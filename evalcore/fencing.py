"""Trace text is data: what a prompt's variables hold stands within tags that it can't close. Pure.

A judge's prompt puts each variable between tags and tells the model that what stands there is to be judged, not to be
followed. That only holds where the text can neither end its tag nor look like another speaker's turn, so here both are
written so that they are read and mean nothing: `</agent_output>` in a text becomes `&lt;/agent_output>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_PLACE = re.compile(r"\{\{\s*(?P<double>[A-Za-z_][\w-]*)\s*\}\}|(?<!\{)\{(?P<single>[A-Za-z_][\w-]*)\}(?!\})")
_TAG = re.compile(r"</\s*([A-Za-z_][\w.-]*)\s*>")
_OPENED = re.compile(r"<([A-Za-z_][\w.-]*)>\s*\Z")
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
)
"""Characters that show nothing and can split a word that a model still reads whole."""
_GAP = rf"[\s{_UNSEEN}]*+"
"""Gives nothing back: a text made of gaps costs no more than another."""
_SMUGGLED = re.compile("[\U000e0000-\U000e007f]")
"""Tags of Unicode: invisible letters that models read."""
_LT = "[<＜﹤‹〈]"
_OUR_SIGNS = (
    "im_start",
    "im_end",
    "im_sep",
    "endoftext",
    "start_header_id",
    "end_header_id",
    "eot_id",
    "begin_of_text",
)
_SIGNS = re.compile(
    rf"{_LT}{_GAP}[|｜](?=[^|<>\n]{{1,40}}[|｜]{_GAP}[>＞﹥])"
    rf"|{_LT}(?=/?(?:s|bos|eos|start_of_turn|end_of_turn|{'|'.join(_OUR_SIGNS)})>)"
    rf"|<(?=<?/?SYS>>)"
    rf"|\[(?=/?INST\])",
    re.IGNORECASE,
)
"""What chat templates set turns apart with; a server may read them as such also within a message."""
_SPEAKER = re.compile(
    rf"[ \t{_UNSEEN}]*(?:\#{{1,6}}[ \t]*)?(?:system|developer|assistant|human|user)[ \t{_UNSEEN}]*[:：]", re.IGNORECASE
)
"""How a line in somebody's name begins."""
QUOTED = "> "


def fill(prompt: str, values: Mapping[str, str]) -> str:
    """The prompt with each `{{name}}` or `{name}` replaced by its value, in one pass: braces in a value stay what they
    are, as do names that are no variable. A value that the prompt does not put between tags gets tags of its name."""
    places, tags = _places(prompt, frozenset(values))
    texts = {name: inert(values[name], tags) for name in {name for _, _, name, _ in places}}
    out: list[str] = []
    at = 0
    for start, end, name, fenced in places:
        out += (prompt[at:start], texts[name] if fenced else f"<{name}>\n{texts[name]}\n</{name}>")
        at = end
    return "".join(out) + prompt[at:]


def inert(text: str, tags: frozenset[str]) -> str:
    """The text, unable to open or close one of `tags`, to begin another speaker's turn, or to say what nobody sees.
    All else stays as it is, other markup too."""
    if not text.isascii():
        text = text.encode(errors="replace").decode()  # half a surrogate pair can't be sent
        text = _SMUGGLED.sub("\ufffd", text)
    if "<" in text or not text.isascii():
        text = _any_tag(tags).sub("&lt;", text)
    if "<" in text or "[" in text or not text.isascii():
        text = _SIGNS.sub(lambda found: "&#91;" if found[0] == "[" else "&lt;", text)
    return "\n".join(map(_unspoken, text.split("\n"))) if ":" in text or "：" in text else text


def _unspoken(line: str) -> str:
    return QUOTED + line if (":" in line or "：" in line) and _SPEAKER.match(line) else line


@lru_cache(maxsize=512)
def _places(prompt: str, names: frozenset[str]) -> tuple[list[tuple[int, int, str, bool]], frozenset[str]]:
    """Where values go: (from, to, name, whether the prompt fences it); and the tags that fence them."""
    places = []
    for found in _PLACE.finditer(prompt):
        name = found["double"] or found["single"]
        if name in names:
            places.append((found.start(), found.end(), name, _fenced(prompt, found.start(), found.end())))
    own = {name for _, _, name, fenced in places if not fenced}
    return places, frozenset(_TAG.findall(prompt)) | own


@lru_cache(maxsize=512)
def _any_tag(tags: frozenset[str]) -> re.Pattern[str]:
    """The beginning of any of these tags, opened or closed, however spaced, spelled in capitals or split."""
    if not tags:
        return re.compile(r"(?!)")
    names = "|".join(_GAP.join(map(re.escape, tag)) for tag in sorted(tags, key=len, reverse=True))
    return re.compile(rf"{_LT}(?={_GAP}[/／⁄∕]?+{_GAP}(?:{names})(?![\w-]))", re.IGNORECASE)


def _fenced(prompt: str, start: int, end: int) -> bool:
    """Whether what stands there is alone between an opening tag and its closing one."""
    opened = _OPENED.search(prompt, max(0, start - 80), start)
    return opened is not None and re.match(rf"\s*</{re.escape(opened[1])}>", prompt[end : end + 80]) is not None
