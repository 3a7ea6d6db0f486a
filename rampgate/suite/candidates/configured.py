"""Asks a candidate: at an address, as suites, gates and the optimisation loop do, or as a suite's file says, a command
or a Python function, too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalcore.gates.golden import Candidate
from rampgate.console import Failure
from rampgate.settings import Settings, revealed
from rampgate.suite.generation import Ready, always_ready
from schemas.checks.suite import Candidate as CandidateSection
from schemas.settings import in_the_clear

if TYPE_CHECKING:
    from rampgate.suite.candidates.command import CommandCandidate
    from rampgate.suite.candidates.entry_point import EntryPointCandidate


def require_address(place: str, url: str, settings: Settings) -> None:
    """Raises Failure, which names the place of the address, where no candidate can answer there, where the address
    holds a password, and where the candidate's key would be sent in the clear to another machine."""
    if not url.startswith(("http://", "https://")):
        raise Failure(f"{place}: {url!r} is no http:// or https:// address")
    if "@" in url.split("/")[2]:
        raise Failure(f"{place}: no name or password may stand in an address: set RAMPGATE_CANDIDATE_KEY")
    if settings.candidate_key is not None and not settings.allow_plaintext and in_the_clear(url):
        raise Failure(f"{place}: the key would be sent in the clear: use https, or set RAMPGATE_ALLOW_PLAINTEXT")


@asynccontextmanager
async def at_address(
    settings: Settings, url: str, beside: Mapping[str, Any], at_once: int = 8, seconds: float = 60.0
) -> AsyncIterator[Candidate]:
    """Yields the candidate at an address. `beside` goes with each item."""
    from evalcore.scoring.http_client import HttpClient
    from streams.gates.candidate import CandidateClient, CandidateLimits

    client, limits = HttpClient(at_once, seconds), CandidateLimits(at_once, seconds)
    try:
        yield CandidateClient(client, url, revealed(settings.candidate_key), limits, beside).answer
    finally:
        await client.aclose()


@asynccontextmanager
async def asking_candidate(
    settings: Settings, told: CandidateSection, home: Path, values: Mapping[str, str], told_variables: Mapping[str, str]
) -> AsyncIterator[tuple[Candidate, Ready]]:
    """Yields the candidate of a suite's file, and what makes it ready before it is timed; its paths are from `home` on,
    `values` go with each case, and its processes get `told_variables`. Raises Failure where it can't be asked as
    such."""
    folder, beside = home / told.folder, {"configuration": dict(values)}
    if told.url is not None:
        require_address("candidate.url", told.url, settings)
        async with at_address(settings, told.url, beside, told.at_once, float(told.seconds)) as candidate:
            yield candidate, always_ready
        return
    try:
        made = _made(told, home, folder, beside, told_variables)
    except ValueError as error:
        raise Failure(f"candidate.environment: {error}") from error
    try:
        yield made.answer, getattr(made, "ready", always_ready)
    finally:
        await made.close()


def _made(
    told: CandidateSection, home: Path, folder: Path, beside: Mapping[str, Any], told_variables: Mapping[str, str]
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
