"""What a reader of a pull request's description sees of it: its fenced blocks, and its boxes that are ticked. Pure.

A Markdown parser reads it, as GitHub's does: what stands in a comment or in somebody's example of a block is nothing
that a reviewer could agree to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

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
