"""Chains the audit's records of an export, and compares a file with them (PF-9 FR-12): `rampgate export --verify FILE`.

Each record carries its page, the hash of the record before it and an HMAC of the installation's key; the last one has
the number of pages and the hash of all bytes. So none can be left out, changed or put in without being noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from rampgate.console import Failure
from rampgate.settings import Settings, revealed
from rampgate.wiring import make_access
from schemas.seals import Seal
from schemas.topics import Topics
from streams.kafka.reading import records_now
from streams.queries.audit import Audit

HMAC, PREVIOUS = "hmac", "previous"


def seal_of(settings: Settings) -> Seal | None:
    """The seal of the records; None without a seal key, and then there is none."""
    key = revealed(settings.seal_key)
    return Seal(key.encode()).purpose(b"rampgate export\0") if key else None


@dataclass(frozen=True)
class ExportAudit(Audit):
    """The audit of one export. `last` holds the hash of its last record, empty before the first."""

    seal: Seal | None = None
    last: list[str] = field(default_factory=lambda: [""])

    async def send(self, record: dict[str, Any]) -> None:
        chained = {**record, "query": {**record["query"], PREVIOUS: self.last[0]}}
        if self.seal is not None:
            chained["query"][HMAC] = self.seal.of(_sealed(chained))
        await super().send(chained)
        self.last[0] = _hash(chained)


async def verified(settings: Settings, file: Path) -> dict[str, Any]:
    """Whether the audit's chain is whole and of this file, `holds`, and why not. Raises Failure, Unavailable."""
    if (seal := seal_of(settings)) is None:
        raise Failure("--verify: needs the seal key by which exports are audited: RAMPGATE_SEAL_KEY_FILE")
    try:
        with file.open("rb") as opened:
            sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
        records = await _records(settings)
    except OSError as error:
        raise Failure(f"--verify {file}: can't be read: {error.strerror or error}") from error
    ends = [one for one in records.values() if one["query"].get("sha256") == sha256]
    found = [(_wrong(one, records, seal), one) for one in ends]
    wrong, end = min(found, key=lambda one: one[0], default=("no record is of an export with these bytes", {}))
    asked = end.get("query", {})
    told = {name: asked.get(name) for name in ("export", "pages", "lines")}
    return {"file": str(file), "sha256": sha256, **told, "holds": not wrong, "reason": wrong}


async def _records(settings: Settings) -> dict[str, dict[str, Any]]:
    """The records of exports that stand on the topic, by their hashes."""
    topic = Topics(settings.topic_prefix, settings.audit_topic).audit
    found = {}
    async for said in records_now(make_access(settings), topic):
        try:
            record = orjson.loads(said.value or b"")
        except orjson.JSONDecodeError:
            continue
        if isinstance(record, dict) and isinstance(record.get("query"), dict) and PREVIOUS in record["query"]:
            found[_hash(record)] = record
    return found


def _wrong(end: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]], seal: Seal) -> str:
    """Why the chain that ends there is not whole; empty where it is."""
    export, page = end["query"].get("export"), end["query"].get("pages")
    record, expected = end, None
    while seal.holds(str(record["query"].get(HMAC)), _sealed(record)):
        asked = record["query"]
        if (asked.get("export"), asked.get("page")) != (export, expected):
            return f"a record stands in the place of page {expected}"
        expected = page if expected is None else expected - 1
        if expected == 0:
            return "" if asked[PREVIOUS] == "" else "records before the first page are of it too"
        if (before := records.get(asked[PREVIOUS])) is None:
            return f"the record of page {expected} is missing, or was changed"
        record = before
    return "a record was not written by an export of this installation, or was changed"


def _hash(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(record, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _sealed(record: Mapping[str, Any]) -> bytes:
    query = {name: value for name, value in record["query"].items() if name != HMAC}
    return orjson.dumps({**record, "query": query}, option=orjson.OPT_SORT_KEYS)
