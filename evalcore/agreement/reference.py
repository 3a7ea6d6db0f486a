"""The human reference set: what annotators of cleared rounds said, each entry chained to the one before. Pure.

An entry has ids, rating, annotator, time and round, and nothing that a user wrote (PF-9 FR-14). Each has the hash of
itself and of the hash before, so that none can be changed, taken out or put in between without being noticed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from evalcore.agreement.check import Bound, Rated
from evalcore.agreement.thresholds import faults
from schemas.checks.agreement import AgreementFile, CategoryAgreement

Entry = dict[str, Any]
FIELDS = ("round", "category", "item_id", "annotator", "score", "at", "previous")
_LABEL = re.compile(r"[\w.-]{1,64}")


class BrokenChain(ValueError):
    """A set was changed otherwise than by adding to its end; `line` is the first entry that does not fit."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


def version(entries: Sequence[Entry]) -> str:
    """Returns the set's version: the last entry's hash, empty of an empty set."""
    return str(entries[-1]["hash"]) if entries else ""


def extended(entries: Sequence[Entry], rounds: Mapping[str, Rated], name: str, at: str) -> list[Entry]:
    """Returns the entries of a round, to stand after those there are. Raises ValueError for a label that could be text
    of a user."""
    before, out = version(entries), []
    for category, rated in rounds.items():
        for item, annotator, score in zip(rated.item_at, rated.annotator_at, rated.scores, strict=True):
            said = rated.called(score)
            if isinstance(said, str) and not _LABEL.fullmatch(said):
                raise ValueError(f"{category}: {said[:80]!r} is no label of one word: the reference set holds no text")
            entry: Entry = {
                "round": name, "category": category, "item_id": rated.items[item],
                "annotator": rated.annotators[annotator], "score": said, "at": at, "previous": before,
            }  # fmt: skip
            before = entry["hash"] = _hash(entry)
            out.append(entry)
    return out


def verified(entries: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """Returns the entries of a set whose chain holds. Raises BrokenChain."""
    before, out = "", []
    for line, entry in enumerate(entries, start=1):
        if {*entry} != {*FIELDS, "hash"}:
            raise BrokenChain(line, f"an entry has {', '.join(FIELDS)} and hash, and nothing else")
        if entry["previous"] != before:
            raise BrokenChain(line, "previous: is not the hash of the entry before: something was taken out or put in")
        if entry["hash"] != _hash(entry):
            raise BrokenChain(line, "hash: is not this entry's: it was changed")
        before = str(entry["hash"])
        out.append(dict(entry))
    return out


def bounds(file: AgreementFile, entries: Iterable[Entry], today: date) -> dict[str, Bound]:
    """Returns what each category has to reach, and where nothing can clear its threshold, why not."""
    entries = list(entries)
    known, cut = {entry["category"] for entry in entries}, cut_off(file, entries)

    def bound(category: str, stated: CategoryAgreement) -> Bound:
        wrong = cut.get(category) or _wrong(stated, category in known, today)
        return Bound(stated.level, float(stated.threshold), stated.baseline_source, wrong)

    return {category: bound(category, stated) for category, stated in file.categories.items()}


def cut_off(file: AgreementFile, entries: Iterable[Entry]) -> dict[str, str]:
    """Returns why not, by category, where a threshold rests on an entry that the set has not: a chain whose end was cut
    off, or that was written again from there on, holds by itself."""
    there = {entry["hash"] for entry in entries}
    why = "reference: the set has no such entry, on which the threshold rests: it was cut off, or written again"
    return {
        name: why for name, one in file.categories.items() if one.reference is not None and one.reference not in there
    }


def _wrong(stated: CategoryAgreement, had_a_round: bool, today: date) -> str:
    return next((f"{one.field}: {one.message}" for one in faults(stated, had_a_round, today)), "")


def _hash(entry: Mapping[str, Any]) -> str:
    content = json.dumps([entry[name] for name in FIELDS], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()
