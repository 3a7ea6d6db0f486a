"""Blocks of a pull request's description that override a gate, and what makes them hold (PC5 §5.2, §5.5). Pure.

An override holds with its fields filled in, before it expires, and with the reviewer's tick below it. Only what a
reader of the description sees counts: neither a comment nor an example in another block is an override, or a reviewer's
word.

What a reader of a pull request's description sees of it: its fenced blocks, and its boxes that are ticked. Pure.

A Markdown parser reads it, as GitHub's does: what stands in a comment or in somebody's example of a block is nothing
that a reviewer could agree to.
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

_TICKED = ("[x] ", "[X] ", "[x]\t", "[X]\t")


@dataclass(frozen=True)
class Block:
    """A fenced block of its own, in no list and no quotation."""

    name: str
    content: str


@dataclass(frozen=True)
class Ticked:
    """A ticked box's text."""

    text: str


def seen(description: str) -> list[Block | Ticked]:
    """In the order they stand in. A comment that nobody ends hides all that follows."""
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
    """As it is shown: without mark-up and comments."""
    text = ""
    for child in inline.children or ():
        if child.type in ("softbreak", "hardbreak"):
            break
        text += child.content if child.type == "text" else ""
    return text


def _left_open(token: Token) -> bool:
    """Whether a comment begins in it that does not end in it. In prose such a beginning is shown as it stands; who
    writes one means a comment all the same."""
    if token.type == "html_block":
        shown = token.content
    else:
        shown = "".join(child.content for child in token.children or () if child.type in ("text", "html_inline"))
    return shown.rfind("<!--") > shown.rfind("-->")


AGREED: Final = "The reviewer agrees to every override above"
SHIFT: Final = "accept-baseline-shift"


@dataclass(frozen=True)
class Shift:
    """Judges whose fall at pre_merge is known and expected: there they warn. As it goes into the audit."""

    judges: tuple[str, ...]
    approved_by: str
    justification: str
    expires: date


def accepted(description: str, registry: Registry, today: date) -> tuple[Shift | None, tuple[str, ...]]:
    """What the description's block accepts, and why what it does not. A block as the template has it accepts nothing
    and is no mistake. A safety judge takes no override, and a floor none at all."""
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
    """Whether anything stands in the block."""
    for found in _blocks(SHIFT, description):
        try:
            block = yaml.safe_load(found)
        except yaml.YAMLError:
            return True
        if not isinstance(block, dict) or any(block.values()):
            return bool(found.strip())
    return False


def unsigned(name: str, description: str) -> list[str]:
    """What is missing where the reviewer did not agree to the block: their tick is for the overrides above it."""
    found = seen(description)
    blocks = [number for number, one in enumerate(found) if isinstance(one, Block) and one.name == name]
    agreed = Ticked(AGREED) in found[blocks[-1] + 1 if blocks else 0 :]
    return [] if agreed else [f"the reviewer's agreement is missing: tick '{AGREED}', below the block {name}"]


def read_block(name: str, description: str, today: date, first: str) -> tuple[dict[str, Any], list[str]]:
    """The one block of the name, and what of it does not hold. `first` is its list of what it overrides."""
    found = _blocks(name, description)
    if len(found) != 1:
        return {}, [f"the description needs one block ```{name}, it has {len(found)}"]
    try:
        block = yaml.safe_load(found[0])
    except yaml.YAMLError as error:
        return {}, [f"{name}: can't be read as YAML: {' '.join(str(error).split())[:200]}"]
    if not isinstance(block, dict):
        return {}, [f"{name}: fields are required: {first}, approved_by, justification, expires"]
    why = [f"{name}: {one} is empty, or no text" for one in ("approved_by", "justification") if not text_of(block, one)]
    expires = block.get("expires")
    if type(expires) is not date:  # nor a moment, which YAML reads as a datetime
        why.append(f"{name}: expires is no day, such as 2026-12-31")
    elif expires < today:
        why.append(f"{name}: it expired on {expires}")
    return block, why


def text_of(block: dict[str, Any], name: str) -> str:
    found = block.get(name)
    return " ".join(found.split()) if isinstance(found, str) else ""


def _judges(named: object, registry: Registry) -> tuple[tuple[str, ...], list[str]]:
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
    return [one.content for one in seen(description) if isinstance(one, Block) and one.name == name]
