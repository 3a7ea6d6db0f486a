"""Tells a running worker to read the registry's files again, and shows what it answers (PC5 FR-10, §5.7 step 4)."""

from __future__ import annotations

from http import HTTPStatus

import httpx
from pydantic import ValidationError
from rich.console import Console

from evalcore.scoring.bounded_answer import BoundedAnswer
from evalcore.scoring.http_client import HttpClient
from evalcore.yaml.findings import Finding, Severity
from rampgate.cli.jobs.registry.findings import show_findings
from rampgate.console import Failure, plain, run
from rampgate.settings import Settings, revealed
from schemas.answers import Finding as FindingAnswer
from schemas.answers import Refresh

TIMEOUT_SECONDS = 60.0
LISTENS_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "::": "[::1]"}  # noqa: S104 - addresses to connect to, not to bind
TAKEN = frozenset({"loaded", "unchanged"})
COLOURS = {"loaded": "green", "unchanged": "green", "refused": "red", "empty": "yellow"}


def request_refresh(settings: Settings) -> Refresh:
    """Refresh the worker at `settings.http`; return its answer. Raises Failure for no answer or a refused token."""
    url = address(settings.http)
    token = revealed(settings.token)
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}

    async def asked() -> BoundedAnswer:
        # Not through a proxy of the environment: the token is for the worker alone.
        async with HttpClient(1, TIMEOUT_SECONDS, direct=True) as client:
            return await client.post(f"{url}/refresh", content=b"", headers=headers)

    try:
        answer = run(asked)
    except httpx.TimeoutException as error:
        raise Failure(f"{url} did not answer in time; is the worker stopped, or its disk gone?") from error
    except httpx.HTTPError as error:
        hint = "is a worker running, and is that its address? (--http, RAMPGATE_HTTP)"
        raise Failure(f"{url} can't be reached: {error}; {hint}") from error
    if answer.status_code == HTTPStatus.UNAUTHORIZED:
        what = "refuses our token" if token is not None else "wants a token"
        raise Failure(f"{url} {what}; give the worker's own in RAMPGATE_TOKEN or RAMPGATE_TOKEN_FILE")
    if answer.status_code == HTTPStatus.MISDIRECTED_REQUEST:
        raise Failure(f"{url}: the worker does not know itself by this name; it takes names in RAMPGATE_HTTP_HOSTS")
    try:
        return Refresh.model_validate_json(answer.content)
    except ValidationError as error:
        hint = "name a worker's address (--http, RAMPGATE_HTTP)"
        raise Failure(f"{url} answered {answer.status_code}, and not as a worker does; {hint}") from error


def address(http: str) -> str:
    """The URL of a process that listens on address:port. Raises Failure for port 0, which names no port."""
    host, _, port = http.rpartition(":")
    if not int(port):
        raise Failure(f"http: {http} names no port; give the one in the worker's log (--http, RAMPGATE_HTTP)")
    return f"http://{LISTENS_EVERYWHERE.get(host, host)}:{port}"


def show(done: Refresh) -> None:
    console = Console(soft_wrap=True, highlight=False)
    found = [*done.errors, *done.warnings]
    show_findings(map(from_answer, found), console)
    left = done.error_count + done.warning_count - len(found)
    if left:
        console.print(f"and {left} more, which are not shown here; `rampgate rules validate` shows all")
    console.print(f"[{COLOURS[done.outcome]}]{done.outcome}[/]: {plain(done.message, 1000)}")


def from_answer(answer: FindingAnswer) -> Finding:
    return Finding(**answer.model_dump(exclude={"severity"}), severity=Severity(answer.severity))
