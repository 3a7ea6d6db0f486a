"""Reads the overrides of a gate out of a pull request's description, and says why one does not hold (PC5 §5.2, §5.5).
Pure.

An override is a fenced block. It holds with its fields filled in, before it expires, and with the reviewer's tick below
it. A Markdown parser reads the description as GitHub's does: only what a reader sees counts. A comment, or an example
of a block inside a list or another block, is neither an override nor a reviewer's word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from evalcore.registry.registry import Registry
from evalcore.yaml.suggestions import UnknownJudge

AGREED: Final = "The reviewer agrees to every override above"
SHIFT: Final = "accept-baseline-shift"
_TICKED = ("[x] ", "[X] ", "[x]\t", "[X]\t")


@dataclass(frozen=True)
class Block:
    """A fenced block at the top level: in no list and no quotation."""

    name: str
    content: str


@dataclass(frozen=True)
class Ticked:
    """The text of a ticked box."""

    text: str


@dataclass(frozen=True)
class Shift:
    """An accepted baseline shift, as the audit has it: at pre_merge these judges warn, since their fall is expected."""

    judges: tuple[str, ...]
    approved_by: str
    justification: str
    expires: date


def accepted(description: str, registry: Registry, today: date) -> tuple[Shift | None, tuple[str, ...]]:
    """Returns the shift that the description's block accepts, and the reasons for what does not hold. An empty block,
    as the template has it, accepts nothing and is no mistake. No override is about a safety judge or a floor."""
    if not filled_in(description):
        return None, ()
    block, why = read_block(SHIFT, description, today, "judges")
    why = [*why, *unsigned(SHIFT, description)]
    judges, wrong = _judges(block.get("judges"), registry)
    if why or not judges:
        return None, tuple(dict.fromkeys([*why, *wrong]))
    shift = Shift(judges, text_of(block, "approved_by"), text_of(block, "justification"), block["expires"])
    return shift, tuple(wrong)


def filled_in(description: str) -> bool:
    """Tells whether the block of an accepted shift has any content."""
    for content in _blocks(SHIFT, description):
        try:
            block = yaml.safe_load(content)
        except yaml.YAMLError:
            return True
        if not isinstance(block, dict) or any(block.values()):
            return bool(content.strip())
    return False


def unsigned(name: str, description: str) -> list[str]:
    """Returns what is missing where the reviewer did not tick the agreement below the block."""
    parts = seen(description)
    blocks = [number for number, part in enumerate(parts) if isinstance(part, Block) and part.name == name]
    agreed = Ticked(AGREED) in parts[blocks[-1] + 1 if blocks else 0 :]
    return [] if agreed else [f"the reviewer's agreement is missing: tick '{AGREED}', below the block {name}"]


def read_block(name: str, description: str, today: date, first: str) -> tuple[dict[str, Any], list[str]]:
    """Returns the fields of the one block of that name, and what is wrong with them. `first` is the field that lists
    what is overridden."""
    blocks = _blocks(name, description)
    if len(blocks) != 1:
        return {}, [f"the description needs one block ```{name}, it has {len(blocks)}"]
    try:
        block = yaml.safe_load(blocks[0])
    except yaml.YAMLError as error:
        return {}, [f"{name}: can't be read as YAML: {' '.join(str(error).split())[:200]}"]
    if not isinstance(block, dict):
        return {}, [f"{name}: fields are required: {first}, approved_by, justification, expires"]
    why = [
        f"{name}: {field} is empty, or no text"
        for field in ("approved_by", "justification")
        if not text_of(block, field)
    ]
    expires = block.get("expires")
    if type(expires) is not date:  # a datetime, which is a date too, is refused
        why.append(f"{name}: expires is no day, such as 2026-12-31")
    elif expires < today:
        why.append(f"{name}: it expired on {expires}")
    return block, why


def text_of(block: dict[str, Any], name: str) -> str:
    """Returns a field's text in one line; "" for what is no text."""
    value = block.get(name)
    return " ".join(value.split()) if isinstance(value, str) else ""


def _judges(named: object, registry: Registry) -> tuple[tuple[str, ...], list[str]]:
    """Returns the ids of the named judges that take an override, and the reasons against the others."""
    if not isinstance(named, Sequence) or isinstance(named, str) or not named:
        return (), [f"{SHIFT}: judges names no judge"]
    held: dict[str, None] = {}
    wrong = []
    for name in named:
        try:
            judge = registry.judge(str(name))
        except UnknownJudge as error:
            wrong.append(f"{SHIFT}: judges: {error}")
            continue
        if judge.safety:
            wrong.append(f"{SHIFT}: judges: {judge.id} is a safety judge, which takes no override")
        else:
            held[judge.id] = None
    return tuple(held), wrong


def _blocks(name: str, description: str) -> list[str]:
    return [part.content for part in seen(description) if isinstance(part, Block) and part.name == name]


def seen(description: str) -> list[Block | Ticked]:
    """Returns the description's blocks and ticked boxes in their order. A comment without an end hides all that
    follows."""
    return list(_seen(MarkdownIt("commonmark").parse(description)))


def _seen(tokens: list[Token]) -> Iterator[Block | Ticked]:
    quoted = 0
    for number, token in enumerate(tokens):
        quoted += token.nesting if token.type.startswith("blockquote_") else 0
        if token.type == "fence" and token.level == 0:
            yield Block(token.info.strip(), token.content)
        elif token.type == "inline":
            # A box is how an item of a list begins: the item opens, its paragraph does, then comes the text.
            begins = number > 1 and tokens[number - 2].type == "list_item_open" and not quoted
            if begins and token.content.startswith(_TICKED):
                yield Ticked(_first_line(token)[len("[x]") :].strip())
        if _left_open(token):
            return


def _first_line(inline: Token) -> str:
    """Returns the first line as a reader sees it: without mark-up and comments."""
    text = ""
    for child in inline.children or ():
        if child.type in ("softbreak", "hardbreak"):
            break
        text += child.content if child.type == "text" else ""
    return text


def _left_open(token: Token) -> bool:
    """Tells whether a comment begins in the token and does not end there. Prose shows such a beginning as text; the
    writer means a comment all the same."""
    if token.type == "html_block":
        shown = token.content
    else:
        shown = "".join(child.content for child in token.children or () if child.type in ("text", "html_inline"))
    return shown.rfind("<!--") > shown.rfind("-->")
