"""Makes what asks a suite's candidate, as the suite's file says: an address, a command or a Python function."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalcore.gates.golden import CandidateAnswer
from rampgate.console import Failure
from rampgate.settings import Settings, revealed
from schemas.checks.suite import Candidate
from schemas.settings import in_the_clear

if TYPE_CHECKING:
    from rampgate.suite.candidates.command import CommandCandidate
    from rampgate.suite.candidates.entry_point import EntryPointCandidate

Asking = Callable[[Mapping[str, Any]], Awaitable[CandidateAnswer]]


@asynccontextmanager
async def asking_candidate(
    settings: Settings, told: Candidate, home: Path, values: Mapping[str, str], told_variables: Mapping[str, str]
) -> AsyncIterator[Asking]:
    """Yields what asks the candidate; its paths are from `home` on, `values` go with each case, and its processes get
    `told_variables`. Raises Failure where it can't be asked as such."""
    folder, beside, seconds = home / told.folder, {"configuration": dict(values)}, float(told.seconds)
    if told.url is not None:
        key = revealed(settings.candidate_key)
        if key is not None and in_the_clear(told.url) and not settings.allow_plaintext:
            raise Failure(
                "candidate.url: the key would be sent in the clear: use https, or set RAMPGATE_ALLOW_PLAINTEXT"
            )
        from evalcore.scoring.http_client import HttpClient
        from streams.gates.candidate import CandidateClient, CandidateLimits

        client = HttpClient(told.at_once, seconds)
        try:
            yield CandidateClient(client, told.url, key, CandidateLimits(told.at_once, seconds), beside).answer
        finally:
            await client.aclose()
        return
    try:
        made = _made(told, home, folder, beside, told_variables)
    except ValueError as error:
        raise Failure(f"candidate.environment: {error}") from error
    try:
        yield made.answer
    finally:
        await made.close()


def _made(
    told: Candidate, home: Path, folder: Path, beside: Mapping[str, Any], told_variables: Mapping[str, str]
) -> CommandCandidate | EntryPointCandidate:
    seconds = float(told.seconds)
    if told.command is not None:
        from rampgate.suite.candidates.command import CommandCandidate

        return CommandCandidate(told.command, folder, told.environment, seconds, beside, told_variables)
    from rampgate.suite.candidates.entry_point import EntryPointCandidate

    # A name is looked for on PATH; a path must hold wherever the process starts.
    python = str(home.absolute() / told.python) if "/" in told.python else told.python
    return EntryPointCandidate(
        str(told.entry), folder, python, told.environment, seconds,
        memory=told.memory_mb << 20, beside=beside, told_variables=told_variables,
    )  # fmt: skip
