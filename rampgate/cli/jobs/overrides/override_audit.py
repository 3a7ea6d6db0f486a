"""Reads what a pull request overrides, asks its host who approved that, and appends what its merge brought to the audit
(PC5 §5.2, §5.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from agents.ports import Unauthorized, Unavailable
from evalcore.gates.overrides import PullRequest
from rampgate.ci_gate.github import REPOSITORY, read_pull_request
from rampgate.ci_gate.inputs import BadFile, lines
from rampgate.ci_gate.override_log import KINDS, publish
from rampgate.console import Failure, run
from rampgate.files import append_file
from rampgate.logs import configure_logs
from rampgate.settings import revealed
from rampgate.settings_sources import load_settings


def looked_up(repository: str | None, pull_request: str) -> PullRequest | None:
    """What GitHub says of the pull request; None without a repository. Raises Failure."""
    if repository is None:
        return None
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


def append_merge(
    audit: Path, pull: PullRequest | None, merged_as: str, overrides: Mapping[str, Sequence[Mapping[str, Any]]]
) -> None:
    """Append the overrides of a merge, by their kinds. Raises Failure where the commit is not what the pull request was
    merged as: an override of a pull request that still can change is none."""
    if pull is None or pull.merged_as != merged_as:
        raise Failure(
            f"--audit: {merged_as[:12]} is not what the pull request was merged as: only from the push of its merge, "
            "--head COMMIT --repository OWNER/NAME --pull-request N, does an override reach the audit"
        )
    about = {"repository": pull.repository, "pull_request": f"#{pull.number}", "author": pull.author, "head": pull.head}
    for kind, entries in overrides.items():
        write(audit, kind, [{**about, **entry} for entry in entries])


def write(audit: Path | None, kind: str, entries: Sequence[Mapping[str, Any]]) -> None:
    """Append a line for each entry, before what it tells of is done. Raises Failure where that can't be done."""
    if audit is None:
        raise Failure("an override needs an entry in the audit: --audit FILE")
    at = datetime.now(UTC).isoformat(timespec="seconds")
    lines = [orjson.dumps({"at": at, "kind": kind, **entry}) + b"\n" for entry in entries]
    append_file(audit, b"".join(lines), "no override holds without the audit:")


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
