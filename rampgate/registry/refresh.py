"""Has a running worker read the registry's files again (PC5 FR-10, §5.7 step 4)."""

from __future__ import annotations

from http import HTTPStatus

import httpx
from pydantic import ValidationError

from evalcore.scoring.http_client import HttpClient
from rampgate.console import Failure
from rampgate.settings import Settings, revealed
from schemas.answers import Refresh

TIMEOUT_SECONDS = 60.0
LISTENS_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "::": "[::1]"}  # noqa: S104 - addresses to connect to, not to bind


async def request_refresh(settings: Settings) -> Refresh:
    """Refresh the worker at `settings.http`; return its answer. Raises Failure for no answer or a refused token."""
    url = address(settings.http)
    token = revealed(settings.token)
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}

    try:
        # Not through a proxy of the environment: the token is for the worker alone.
        async with HttpClient(1, TIMEOUT_SECONDS, direct=True) as client:
            answer = await client.post(f"{url}/refresh", content=b"", headers=headers)
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
