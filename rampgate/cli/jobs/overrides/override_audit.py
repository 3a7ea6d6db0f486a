"""Reads what a pull request overrides, asks its host who approved that, and appends each override to the audit (PC5
§5.5)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import orjson

from agents.ports import Unauthorized, Unavailable
from evalcore.gates.overrides import PullRequest
from rampgate.ci_gate.github import REPOSITORY, read_pull_request
from rampgate.ci_gate.inputs import BadFile, lines
from rampgate.ci_gate.override_log import KINDS, publish
from rampgate.console import Failure, run
from rampgate.logs import configure_logs
from rampgate.registry.file_writer import require_regular
from rampgate.settings import Settings, revealed
from rampgate.settings_sources import load_settings

LONGEST = 256 * 1024
"""Bytes of a description; GitHub's have at most 65,536 characters."""


def read_description(description: Path | None) -> str:
    """The text of a pull request's description; `-` reads stdin. Raises Failure."""
    if description is None:
        return ""
    try:
        if str(description) == "-":
            text = sys.stdin.read(LONGEST + 1)
        else:
            with description.open(encoding="utf-8") as file:
                text = file.read(LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{description}: can't be read: {error}") from error
    if len(text) > LONGEST:
        raise Failure(f"{description}: longer than any pull request's description")
    return text


def looked_up(repository: str | None, pull_request: str, *given: object) -> PullRequest | None:
    """What GitHub says of the pull request; None without a repository. `given` is what the command line says of it
    instead. Raises Failure."""
    if repository is None:
        return None
    if any(given):
        raise Failure(
            "--repository: description and labels are asked for there, so leave --description and --label out"
        )
    number = pull_request.removeprefix("#")
    if not number.isascii() or not number.isdigit() or len(number) > 9:
        raise Failure("--repository: say which pull request, by its number: --pull-request 12")
    if not REPOSITORY.fullmatch(repository):
        raise Failure("--repository: name it as GitHub does: owner/name")
    settings = load_settings()
    url, token = settings.github_url, revealed(settings.github_token)
    try:
        return run(lambda: read_pull_request(url, token, repository, int(number)))
    except (Unavailable, Unauthorized) as error:
        raise Failure(str(error)) from error


def append(
    audit: Path | None, kind: str, pull: PullRequest, entries: Sequence[Mapping[str, Any]], central: Settings | None
) -> None:
    """Append a line for each override, and send it to the central log where the settings of one are given. Raises
    Failure: an override that is not in the audit does not hold."""
    about = {"repository": pull.repository, "pull_request": f"#{pull.number}", "author": pull.author, "head": pull.head}
    written = write(audit, kind, [{**about, **entry} for entry in entries])
    if central is not None:
        try:
            run(lambda: publish(central, written))
        except Unavailable as error:
            raise Failure(f"--publish: no override holds that the central log does not have: {error}") from error


def write(audit: Path | None, kind: str, entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Append a line for each entry, before what it tells of is done, and return what was written. Raises Failure where
    that can't be done."""
    if audit is None:
        raise Failure("an override needs an entry in the audit: --audit FILE")
    at = datetime.now(UTC).isoformat(timespec="seconds")
    written = [{"at": at, "kind": kind, **plain_entry(entry)} for entry in entries]
    lines = [orjson.dumps(entry) + b"\n" for entry in written]
    try:
        require_regular(audit)
        with audit.open("ab") as file:
            file.write(b"".join(lines))
    except OSError as error:
        raise Failure(f"{audit}: the audit can't be written, so no override holds: {error}") from error
    return written


def publish_file(audit: Path, kafka: str | None) -> int:
    """Send the overrides of an audit's file to the central log, and return how many they are. Raises Failure."""
    try:
        entries = [entry for _, entry in lines(audit) if entry.get("kind") in KINDS]
    except BadFile as error:
        raise Failure(str(error)) from error
    for number, entry in enumerate(entries, start=1):
        if not entry.get("repository"):
            raise Failure(f"{audit}: override {number} names no repository")
    settings = load_settings({"kafka": kafka})
    configure_logs("error", "console")
    try:
        if entries:
            run(lambda: publish(settings, entries))
    except Unavailable as error:
        raise Failure(f"no override holds that the central log does not have: {error}") from error
    return len(entries)


def plain_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with dates as ISO 8601 text."""
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in entry.items()}
