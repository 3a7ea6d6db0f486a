"""What a new vertical starts with: its name, its sub-agents, its categories and judges (PF-9 FR-8, §5.5, §5.10)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from evalcore.corpus import Corpus
from evalcore.linting.categories import known as known_categories
from evalcore.near import near_miss
from evalcore.validation import ALONE
from schemas.judges import Classification, judge_id
from schemas.manifests import CATEGORY
from schemas.verticals import UNKNOWN, UNREGISTERED

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)
RESERVED: Final = frozenset({UNREGISTERED, UNKNOWN, ALONE, "platform", "all", "none", "default"})
"""Words that stand for something else where verticals are named: metrics, views, files that lie in no registry."""
_READ_AS_ELSE: Final = frozenset(
    {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "con", "prn", "aux", "nul"}
)
STARTERS: Final = ("response_quality", "tool_compliance", "ux_quality", "fetch_legal")
"""The quality judges of PF-9's worked example; those of them that the registry has."""
PARENT: Final = "general_qa"
ARCHETYPE: Final = "conversation"


class Refused(ValueError):
    """What was asked for can't be scaffolded; says why and what to do."""


@dataclass(frozen=True)
class Wanted:
    """As asked for; what is empty or None is chosen out of the registry."""

    name: str
    project: str | None = None
    workspace: str = "default"
    sub_agents: tuple[str, ...] = ()
    archetype: str | None = None
    categories: tuple[str, ...] = ()
    inherits_from: str | None = None
    judges: tuple[str, ...] = ()
    ticket: str | None = None


@dataclass(frozen=True)
class Start:
    """All of it settled. `own` categories are new; `reused` ones exist. `parent` is None where there is none."""

    name: str
    project: str
    workspace: str
    sub_agents: tuple[str, ...]
    archetype: str | None
    own: tuple[str, ...]
    reused: tuple[str, ...]
    parent: str | None
    judges: tuple[str, ...]
    ticket: str


def start(wanted: Wanted, corpus: Corpus) -> Start:
    """Raises Refused. Categories and judges of a vertical that is half there are those its files name."""
    require_name(wanted.name, corpus)
    for flag, text in (("--project", wanted.project), ("--workspace", wanted.workspace), ("--ticket", wanted.ticket)):
        if text is not None:
            _require_text(flag, text)
    for agent in wanted.sub_agents:
        _require_text("--sub-agent", agent)
    archetype = _archetype(wanted.archetype, corpus)
    own, reused = _categories(wanted, corpus)
    return Start(
        name=wanted.name,
        project=wanted.project or f"{wanted.name}-eval",
        workspace=wanted.workspace,
        sub_agents=tuple(dict.fromkeys(wanted.sub_agents)) or (wanted.name,),
        archetype=archetype,
        own=own,
        reused=reused,
        parent=_parent(wanted.inherits_from, corpus),
        judges=_judges(wanted, corpus, archetype),
        ticket=wanted.ticket or f"PLT-XXXX-{wanted.name}-bootstrap",
    )


def verticals(corpus: Corpus) -> set[str]:
    """Every vertical that has a file, readable or not."""
    broken = {
        key.partition("/")[0]
        for kind, key in corpus.unread
        if kind in ("vertical", "extension", "selection", "vertical_rule")
    }
    overlaid = {vertical for vertical, _ in corpus.vertical_rules}
    return {*corpus.verticals, *corpus.extensions, *corpus.selections, *overlaid, *broken}


def require_name(name: str, corpus: Corpus) -> None:
    """Raises Refused for what can't name a vertical: as a folder, in a metric's label, beside the others."""
    if NAME.fullmatch(name) is None:
        tidied = re.sub(r"[^a-z0-9_-]+", "_", name.strip().lower()).strip("_-")
        hint = f"; {tidied!r} could" if NAME.fullmatch(tidied) and tidied not in RESERVED else ""
        raise Refused(
            f"NAME: {name[:80]!r} can't name a vertical{hint}. Lower-case letters, digits, _ and -, at most 63, "
            "a letter first"
        )
    if name in RESERVED or name in _READ_AS_ELSE:
        raise Refused(f"NAME: {name!r} is reserved; choose another name")
    for other in sorted(verticals(corpus) - {name}):
        if judge_id(other) == judge_id(name):
            raise Refused(f"NAME: vertical {other!r} is there; {name!r} would look like the same one")


def _categories(wanted: Wanted, corpus: Corpus) -> tuple[tuple[str, ...], tuple[str, ...]]:
    selection, extension = corpus.selections.get(wanted.name), corpus.extensions.get(wanted.name)
    manifest = corpus.manifest.model.categories if corpus.manifest is not None else {}
    others = known_categories(corpus) - {name for name, one in manifest.items() if one.vertical == wanted.name}
    if extension is not None:
        named = extension.model.categories
        new = [name for name in wanted.categories if name not in named]
        if new:
            raise Refused(f"--category: {extension.document.file} is there already; write {', '.join(new)} into it")
        reused = {
            name for name, one in named.items() if name in others and (one.inherits_from, one.judges) == (None, None)
        }
        return tuple(name for name in named if name not in reused), tuple(sorted(reused))
    if selection is not None:
        return tuple(selection.model.categories), ()
    asked = tuple(dict.fromkeys(wanted.categories))
    for name in asked:
        alike = [other for other in others if judge_id(other) == judge_id(name) and other != name]
        if CATEGORY.fullmatch(name) is None or alike:
            hint = f"; there is {alike[0]!r}" if alike else "; lower-case letters, digits and _, a letter first"
            raise Refused(f"--category: {name[:80]!r} can't name a category{hint}")
    if not asked:
        asked = (f"{judge_id(wanted.name)[:50]}_general",)
    return tuple(name for name in asked if name not in others), tuple(name for name in asked if name in others)


def _parent(asked: str | None, corpus: Corpus) -> str | None:
    names = known_categories(corpus)
    if asked is not None:
        if asked not in names:
            raise Refused(f"--inherits-from: there is no category {asked[:80]!r}{near_miss(asked, names)}")
        return asked
    return PARENT if PARENT in names else None


def _archetype(asked: str | None, corpus: Corpus) -> str | None:
    source = corpus.base or corpus.manifest
    names = source.model.archetypes if source is not None else {}
    if asked is not None:
        if asked not in names:
            raise Refused(f"--archetype: there is no archetype {asked[:80]!r}{near_miss(asked, names)}")
        return asked
    return ARCHETYPE if ARCHETYPE in names else None


def _judges(wanted: Wanted, corpus: Corpus, archetype: str | None) -> tuple[str, ...]:
    selection = corpus.selections.get(wanted.name)
    quality = {name for name, rule in corpus.rules.items() if rule.model.classification is Classification.QUALITY}
    asked = [judge_id(name) for name in wanted.judges]
    for name in asked:
        if name in corpus.rules and name not in quality:
            raise Refused(f"--judge: {name} is a safety judge; every vertical inherits it and none sets it (PF-9 FR-2)")
        if name not in quality:
            raise Refused(f"--judge: the registry has no judge {name[:80]!r}{near_miss(name, quality)}")
    if selection is not None:
        listed = [judge_id(name) for picked in selection.model.categories.values() for name in picked.quality_judges]
        asked += [name for name in listed if name in quality]
    if not asked:
        asked = [name for name in STARTERS if name in quality and _scores(corpus, name, archetype)]
    if not asked:
        asked = sorted(name for name in quality if _scores(corpus, name, archetype))[:4]
    return tuple(dict.fromkeys(asked))


def _scores(corpus: Corpus, name: str, archetype: str | None) -> bool:
    """Whether the judge is made for the archetype's sub-agents, and switched on."""
    rule = corpus.rules[name].model
    return rule.enabled and (not rule.applies_to or archetype in rule.applies_to)


def _require_text(flag: str, text: str) -> None:
    if not text.strip() or text != text.strip() or not text.isprintable() or len(text) > 200:
        raise Refused(f"{flag}: one line of 1 to 200 printable characters, without blanks around it")
