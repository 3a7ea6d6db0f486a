"""Seals what we write about a workflow, and says what a trace's record is by that seal. Pure.

The agent writes to the topic of traces and answers for itself offline: without a valid seal the fields that we add are
dropped, so no agent writes its own evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

import orjson

from evalcore.judges.bindings import vertical_named
from schemas.seals import Seal

SEAL: Final = "proposal_seal"
"""The field of a record that holds the seal over all its other fields."""
FIELDS: Final = ("proposal_results", "proposal_phase", "proposal_steps", "proposal_missing")
"""What we add besides."""
ADDED: Final = frozenset((*FIELDS, SEAL))
TRACES: Final = b"rampgate: completed traces"
"""The purpose of the seal on a trace's record."""
ANSWERS: Final = b"rampgate: answers of remediation run"
"""The purpose of the seal on an answer that `remediation run` writes: it holds on no trace."""


@dataclass(frozen=True)
class Seals:
    """Seals records with the present key; takes also what the key before it sealed. Without keys nothing holds."""

    held: tuple[Seal, ...] = ()

    @classmethod
    def of(cls, about: bytes, *keys: str | None) -> Seals:
        """Returns the seals for a purpose by RAMPGATE_SEAL_KEY and RAMPGATE_SEAL_KEY_PREVIOUS; None: not configured."""
        return cls(tuple(Seal(key.encode()).purpose(about) for key in keys if key))

    def sealed(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the record with a seal over all its fields. Raises LookupError without a key, and
        orjson.JSONEncodeError for what is nested too deep."""
        if not self.held:
            raise LookupError("no key: RAMPGATE_SEAL_KEY")
        return {**record, SEAL: self.held[0].of(_content(record))}

    def hold(self, record: Mapping[str, Any]) -> bool:
        """Returns whether the record is as we sealed it: an edit of any field, or another record's seal, is none."""
        given = record.get(SEAL)
        if not isinstance(given, str):
            return False
        try:
            content = _content(record)
        except orjson.JSONEncodeError:
            return False
        return any(seal.holds(given, content) for seal in self.held)

    def without_forged(self, record: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        """Returns the record without fields that only we write, unless they bear our seal; and whether it had some."""
        if ADDED.isdisjoint(record) or self.hold(record):
            return record, False
        return {name: value for name, value in record.items() if name not in ADDED}, True


class Form(StrEnum):
    """What a trace's record is. PLAIN: judged as it came. BARE: it names a workflow and waits to be completed; until
    then the trace has not ended. COMPLETED: with what the cluster says of the workflow, and our seal."""

    PLAIN = "plain"
    BARE = "bare"
    COMPLETED = "completed"


class Opened(NamedTuple):
    """A trace's record as it counts. `forged`: fields without a valid seal were dropped from it."""

    form: Form
    record: Mapping[str, Any]
    forged: bool = False


@dataclass(frozen=True)
class TraceForms:
    """The one rule for what a trace's record is. `namespaces`: by vertical, those in which its workflows may run;
    traces of other verticals are judged as they came."""

    seals: Seals = Seals()
    namespaces: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def open(self, record: Mapping[str, Any]) -> Opened:
        """Returns what the record is, without forged fields."""
        if "proposal" not in record and ADDED.isdisjoint(record):
            return Opened(Form.PLAIN, record)
        kept, forged = self.seals.without_forged(record)
        if SEAL in kept:
            return Opened(Form.COMPLETED, kept)
        bare = kept.get("proposal") is not None and vertical_named(kept) in self.namespaces
        return Opened(Form.BARE if bare else Form.PLAIN, kept, forged)


def _content(record: Mapping[str, Any]) -> bytes:
    return orjson.dumps({name: record[name] for name in record if name != SEAL}, option=orjson.OPT_SORT_KEYS)
