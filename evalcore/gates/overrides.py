"""Reads the overrides of gates that a pull request asks for, says why one does not hold, and plans the gates that are
left (PC5 §5.2, §5.5). Pure.

An override is a fenced block, or an entry of enforcement-overrides.yaml. A block holds with its fields filled in,
before it expires, with the reviewer's tick below it. Its author could name anybody, so who approves is no field of it:
it is whoever gave the review that the target branch requires, as the host of the repository says. A Markdown parser
reads the description as GitHub's does: only what a reader sees counts. A comment, or an example of a block inside a
list or another block, is neither an override nor a reviewer's word.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from evalcore.registry.gate_paths import DEFAULT, Triggered, triggered
from evalcore.registry.registry import Registry
from evalcore.yaml.loader import read_yaml
from evalcore.yaml.suggestions import UnknownJudge
from schemas.judges import Milestone, judge_id
from schemas.manifests import LONGEST_OVERRIDE, GatePathsFile, Override

AGREED: Final = "The reviewer agrees to every override above"
SHIFT: Final = "accept-baseline-shift"
SKIP: Final = "eval-skip-justification"
LABELS: Final = {"eval-skip-pre-ramp": Milestone.PRE_RAMP, "eval-skip-pre-full": Milestone.PRE_FULL}
LOOSER: Final = "eval-enforcement-override"
"""The label of a pull request that adds to enforcement-overrides.yaml."""
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
    to the repository. `edited_at` and `edited_by` tell of the description's last edit, None where there was none.
    `base` is the target branch, which requires so many approving reviews, with `owners_required` one of code owners.
    `merged_as` is the commit that it was merged as, empty before."""

    repository: str
    number: int
    author: str
    head: str
    description: str = ""
    labels: tuple[str, ...] = ()
    edited_at: datetime | None = None
    edited_by: str | None = None
    approvals: tuple[Approval, ...] = ()
    base: str = ""
    reviews_required: int = 0
    owners_required: bool = False
    merged_as: str = ""
    merged_at: datetime | None = None

    @property
    def approved_by(self) -> str:
        """Whoever agreed to what is merged, by their names on GitHub."""
        return ", ".join(f"@{one.by}" for one in self.approvals if not self.outdated(one))

    def outdated(self, one: Approval) -> str:
        """Why an approval is not one of what is merged and of the description as it reads; empty where it is."""
        if _same(one.by, self.author):
            return f"@{one.by} is the author of the pull request; another person approves"
        if one.commit != self.head:
            return f"@{one.by} approved commit {one.commit[:12]}, and {self.head[:12]} is to be merged"
        if self.edited_at is not None and self.edited_at > one.at and not _same(self.edited_by or "", one.by):
            return f"the description was edited after @{one.by} had approved it"
        late = self.merged_at is not None and one.at > self.merged_at
        return f"@{one.by} approved after the merge" if late else ""


@dataclass(frozen=True)
class Block:
    """A fenced block at the top level: in no list and no quotation."""

    name: str
    content: str


@dataclass(frozen=True)
class Ticked:
    """The text of a ticked box."""

    text: str


Held = tuple[list[dict[str, Any]], list[str]]
"""Overrides that hold, as the audit has them, and why others do not."""


def accepted(pull: PullRequest | None, registry: Registry, today: date) -> Held:
    """Returns the baseline shift that the description's block accepts: at pre_merge its judges warn, since their fall
    is expected. An empty block, as the template has it, accepts nothing and is no mistake. No override is about a
    safety judge or a floor."""
    if pull is None or not filled_in(pull.description):
        return [], []
    block, why = signed_block(SHIFT, pull, today, "judges")
    judges, wrong = _judges(block.get("judges"), registry)
    if why or not judges:
        return [], list(dict.fromkeys([*why, *wrong]))
    return [{"judges": judges, **_agreed(block, pull)}], wrong


def skips(pull: PullRequest | None, today: date) -> Held:
    """Returns the gates of rollouts that labels and block leave out from the merge on."""
    labels = [label for label in dict.fromkeys(pull.labels) if label.startswith("eval-skip-")] if pull else []
    wrong = [
        f"{label}: there is no such override; there are {', '.join(LABELS)}" for label in labels if label not in LABELS
    ]
    known = [label for label in labels if label in LABELS]
    if pull is None or not known:
        return [], wrong
    block, why = signed_block(SKIP, pull, today, "milestones")
    named = block.get("milestones")
    held = []
    for label in known:
        if why:
            wrong += [f"{label}: {reason}" for reason in why]
        elif not isinstance(named, list) or LABELS[label] not in named:
            wrong.append(f"{label}: {SKIP}: milestones does not name {LABELS[label]}")
        else:
            held.append({"milestone": LABELS[label], "label": label, **_agreed(block, pull)})
    return held, wrong


def _agreed(block: dict[str, Any], pull: PullRequest) -> dict[str, Any]:
    justification = text_of(block, "justification")
    return {"approved_by": pull.approved_by, "justification": justification, "expires": block["expires"]}


def filled_in(description: str) -> bool:
    """Tells whether the block of an accepted shift has any content."""
    for content in _blocks(SHIFT, description):
        block, wrong = _fields(SHIFT, content)
        if content.strip() and (wrong or any(block.values())):
            return True
    return False


def unapproved(pull: PullRequest) -> list[str]:
    """Returns why no override of the pull request is approved. Before the merge no one need have reviewed it, since its
    branch merges nothing without; but no approval may be of another commit or description than stand."""
    if pull.reviews_required < 1:
        branch = f"{pull.repository}: branch {pull.base or 'unknown'}"
        return [f"{branch} merges without an approving review, so no one approves an override: have it require one"]
    if pull.approved_by or not (pull.approvals or pull.merged_at):
        return []
    return [pull.outdated(one) for one in pull.approvals] or ["it was merged without an approval"]


def excepted(added: Sequence[Override], pull: PullRequest) -> Held:
    """Returns the entries that a pull request adds to enforcement-overrides.yaml as the audit has them, and why they do
    not hold: they need its label, and a review of the file's owners, who are spec owners (PC5 §5.2)."""
    why = unapproved(pull) if added else []
    if added and LOOSER not in pull.labels:
        why.append(f"the pull request has no label {LOOSER}")
    if added and not pull.owners_required:
        why.append(f"branch {pull.base} merges without a review of code owners, so no spec owner signs off")
    entries = [
        {
            "judges": [judge_id(one.judge)], "milestone": one.milestone, "approved_by": pull.approved_by,
            "justification": one.justification, "expires": one.expires,
            **({"vertical": one.vertical} if one.vertical is not None else {}),
        }
        for one in added
    ]  # fmt: skip
    return ([], [f"enforcement-overrides.yaml: {reason}" for reason in why]) if why else (entries, [])


def _same(login: str, other: str) -> bool:
    return login.casefold() == other.casefold()


def signed_block(name: str, pull: PullRequest, today: date, first: str) -> tuple[dict[str, Any], list[str]]:
    """Returns the fields of the description's one block of that name, and what is wrong with them, with the reviewer's
    tick below it, or with who approved. `first` is the field that lists what is overridden."""
    block, why = read_block(name, pull.description, today, first)
    parts = seen(pull.description)
    blocks = [number for number, part in enumerate(parts) if isinstance(part, Block) and part.name == name]
    if Ticked(AGREED) not in parts[blocks[-1] + 1 if blocks else 0 :]:
        why.append(f"the reviewer's agreement is missing: tick '{AGREED}', below the block {name}")
    return block, [*why, *unapproved(pull)]


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
        return {}, [f"{name}: fields are required: {first}, justification, expires"]
    why = [] if text_of(block, "justification") else [f"{name}: justification is empty, or no text"]
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
    """Returns a field's text in one line, without invisible marks; "" for no text, or one without letter or digit."""
    value = block.get(name)
    if not isinstance(value, str) or not any(map(str.isalnum, value)):
        return ""
    return " ".join("".join(mark for mark in value if unicodedata.category(mark) != "Cf").split())


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


@dataclass(frozen=True)
class Renamed:
    """A changed file that had another name before."""

    old: str
    new: str


@dataclass(frozen=True)
class Plan:
    """The gates to run, and why. `wrong` says which overrides do not hold and why; their gates run."""

    gates: tuple[Milestone, ...]
    files: tuple[Triggered, ...]
    skipped: list[dict[str, Any]]
    wrong: list[str]


def plan(
    changed: Iterable[str | Renamed],
    *,
    today: date,
    table: GatePathsFile = DEFAULT,
    pull: PullRequest | None = None,
) -> Plan:
    """Plans the gates of the changed files (PC5 §5.5). A path that no pattern fits triggers all gates; a renamed file
    triggers those of both its names. Only `pre_ramp` and `pre_full` can be skipped, once the pull request is merged."""
    files = tuple(found for one in dict.fromkeys(changed) for found in _triggered(one, table))
    wanted = {gate for file in files for gate in file.gates}
    skipped, wrong = skips(pull, today)
    held = {skip["milestone"] for skip in skipped if pull is not None and pull.merged_as}
    gates = tuple(gate for gate in Milestone if gate in wanted and gate not in held)
    return Plan(gates, files, [skip for skip in skipped if skip["milestone"] in wanted], wrong)


def _triggered(changed: str | Renamed, table: GatePathsFile) -> tuple[Triggered, ...]:
    if isinstance(changed, str):
        return (triggered(changed, table),)
    return replace(triggered(changed.old, table), renamed_to=changed.new), triggered(changed.new, table)
