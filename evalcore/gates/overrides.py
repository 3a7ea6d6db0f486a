"""Reads the overrides of a gate out of a pull request's description, and says why one does not hold (PC5 §5.2, §5.5).
Pure.

An override is a fenced block. It holds with its fields filled in, before it expires, with the reviewer's tick below it,
and once the host of the repository says that who is named in it has approved the pull request: a description is its
author's text, ticks and all. A Markdown parser reads it as GitHub's does: only what a reader sees counts. A comment, or
an example of a block inside a list or another block, is neither an override nor a reviewer's word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Protocol

from markdown_it import MarkdownIt
from markdown_it.token import Token

from evalcore.registry.registry import Registry
from evalcore.yaml.loader import read_yaml
from evalcore.yaml.suggestions import UnknownJudge
from schemas.manifests import LONGEST_OVERRIDE

AGREED: Final = "The reviewer agrees to every override above"
SHIFT: Final = "accept-baseline-shift"
LOGIN: Final = re.compile(r"@?([A-Za-z0-9][A-Za-z0-9_-]{0,99})", re.ASCII)
_TICKED = ("[x] ", "[X] ", "[x]\t", "[X]\t")


@dataclass(frozen=True)
class Approval:
    """A reviewer's standing approval: of which commit, and when."""

    by: str
    commit: str
    at: datetime


@dataclass(frozen=True)
class PullRequest:
    """What the host of a repository says of a pull request. `approvals` are those that stand, of people who may write
    to the repository. `edited_at` and `edited_by` tell of the description's last edit, None where there was none."""

    repository: str
    number: int
    author: str
    head: str
    description: str = ""
    labels: tuple[str, ...] = ()
    edited_at: datetime | None = None
    edited_by: str | None = None
    approvals: tuple[Approval, ...] = ()


class PullRequests(Protocol):
    """The host of a repository."""

    async def read(self, repository: str, number: int) -> PullRequest:
        """Return what the host says of a pull request. Raises Unavailable and Unauthorized."""
        ...


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


def accepted(
    description: str, registry: Registry, today: date, pull: PullRequest | None = None
) -> tuple[Shift | None, tuple[str, ...]]:
    """Returns the shift that the description's block accepts, and the reasons for what does not hold. An empty block,
    as the template has it, accepts nothing and is no mistake. No override is about a safety judge or a floor. Without
    what the host says of the pull request none holds."""
    if not filled_in(description):
        return None, ()
    block, why = read_block(SHIFT, description, today, "judges")
    why = [*why, *unsigned(SHIFT, description), *unapproved(SHIFT, block, pull)]
    judges, wrong = _judges(block.get("judges"), registry)
    if why or not judges:
        return None, tuple(dict.fromkeys([*why, *wrong]))
    shift = Shift(judges, text_of(block, "approved_by"), text_of(block, "justification"), block["expires"])
    return shift, tuple(wrong)


def filled_in(description: str) -> bool:
    """Tells whether the block of an accepted shift has any content."""
    for content in _blocks(SHIFT, description):
        block, wrong = _fields(SHIFT, content)
        if content.strip() and (wrong or any(block.values())):
            return True
    return False


def unsigned(name: str, description: str) -> list[str]:
    """Returns what is missing where the reviewer did not tick the agreement below the block."""
    parts = seen(description)
    blocks = [number for number, part in enumerate(parts) if isinstance(part, Block) and part.name == name]
    agreed = Ticked(AGREED) in parts[blocks[-1] + 1 if blocks else 0 :]
    return [] if agreed else [f"the reviewer's agreement is missing: tick '{AGREED}', below the block {name}"]


def unapproved(name: str, block: dict[str, Any], pull: PullRequest | None) -> list[str]:
    """Returns why the pull request is not approved by who the block names: a person other than its author, whose
    approval is of the commit that stands and of the description as it reads."""
    login = LOGIN.fullmatch(text_of(block, "approved_by"))
    if login is None:
        return [f"{name}: approved_by: name one person as GitHub does, such as '@owner'"]
    if pull is None:
        return [f"{name}: nobody was asked who approved it: name the repository and the pull request's number"]
    who = login[1]
    if _same(who, pull.author):
        return [f"{name}: approved_by: @{who} is the author of the pull request; another person approves"]
    found = next((one for one in pull.approvals if _same(one.by, who)), None)
    if found is None:
        return [f"{name}: approved_by: no approval by @{who} stands, as somebody who may write to {pull.repository}"]
    why = []
    if found.commit != pull.head:
        why.append(f"{name}: @{who} approved commit {found.commit[:12]}, and {pull.head[:12]} is to be merged")
    if pull.edited_at is not None and pull.edited_at > found.at and not _same(pull.edited_by or "", who):
        why.append(f"{name}: the description was edited after @{who} had approved it")
    return why


def _same(login: str, other: str) -> bool:
    return login.casefold() == other.casefold()


def read_block(name: str, description: str, today: date, first: str) -> tuple[dict[str, Any], list[str]]:
    """Returns the fields of the one block of that name, and what is wrong with them. `first` is the field that lists
    what is overridden."""
    blocks = _blocks(name, description)
    if len(blocks) != 1:
        return {}, [f"the description needs one block ```{name}, it has {len(blocks)}"]
    block, wrong = _fields(name, blocks[0])
    if wrong:
        return {}, wrong
    if not block:
        return {}, [f"{name}: fields are required: {first}, approved_by, justification, expires"]
    why = [
        f"{name}: {field} is empty, or no text"
        for field in ("approved_by", "justification")
        if not text_of(block, field)
    ]
    expires = block.get("expires")
    if type(expires) is not date:  # a datetime, which is a date too, is refused
        why.append(f"{name}: expires is no day, YYYY-MM-DD")
    elif expires < today:
        why.append(f"{name}: it expired on {expires}")
    elif expires - today > LONGEST_OVERRIDE:
        why.append(f"{name}: it expires on {expires}; an override holds for {LONGEST_OVERRIDE.days} days at most")
    return block, why


def _fields(name: str, content: str) -> tuple[dict[str, Any], list[str]]:
    """Returns a block's fields, and what of it can't be read. The reader of configuration files reads it: it is bounded
    and takes no alias, with which a few lines can stand for gigabytes."""
    document, findings = read_yaml(name, content.encode("utf-8", "surrogatepass"))
    wrong = [f"{name}: line {one.line}: can't be read as YAML: {one.message}; {one.fix}"[:300] for one in findings[:5]]
    data = document.data if document is not None else {}
    return (data, wrong) if isinstance(data, dict) else ({}, [*wrong, f"{name}: has no fields"])


def text_of(block: dict[str, Any], name: str) -> str:
    """Returns a field's text in one line; "" for what is no text, or has no letter or digit. Invisible marks are left
    out, but for a name, which has to be read as it is."""
    value = block.get(name)
    if not isinstance(value, str) or not any(map(str.isalnum, value)):
        return ""
    if name != "approved_by":
        value = "".join(mark for mark in value if unicodedata.category(mark) != "Cf")
    return " ".join(value.split())


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
