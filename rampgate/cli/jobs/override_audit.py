"""Reads overrides of gates from a pull request's description, and appends each one to the audit (PC5 §5.5)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import orjson

from rampgate.console import Failure


def read_description(description: Path | None) -> str:
    """The text of a pull request's description; `-` reads stdin. Raises Failure."""
    if description is None:
        return ""
    try:
        return sys.stdin.read() if str(description) == "-" else description.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{description}: can't be read: {error}") from error


def append(audit: Path | None, kind: str, pull_request: str, entries: Sequence[Mapping[str, Any]]) -> None:
    """Append a line for each override. Raises Failure: an override that is not in the audit does not hold."""
    write(audit, kind, [{"pull_request": pull_request, **entry} for entry in entries])


def write(audit: Path | None, kind: str, entries: Sequence[Mapping[str, Any]]) -> None:
    """Append a line for each entry, before what it tells of is done. Raises Failure where that can't be written."""
    if audit is None:
        raise Failure("an override needs an entry in the audit: --audit FILE")
    at = datetime.now(UTC).isoformat(timespec="seconds")
    lines = [orjson.dumps({"at": at, "kind": kind, **plain_entry(entry)}) + b"\n" for entry in entries]
    try:
        with audit.open("ab") as file:
            file.write(b"".join(lines))
    except OSError as error:
        raise Failure(f"{audit}: the audit can't be written, so no override holds: {error}") from error


def plain_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with dates as ISO 8601 text."""
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in entry.items()}
