"""Notifications over real HTTP to a local server: what is tried again, within which bounds, and what stays secret."""

from __future__ import annotations

import pytest

from evalcore.scoring.http_client import HttpClient
from streams.alerts.notifiers import Address, Undelivered, grafana
from tests.unit.streams.alerts.notifier_rig import Server, notifier


async def test_a_message_that_is_taken_is_sent_once(server: Server, client: HttpClient) -> None:
    await notifier(client).post(grafana(server.url + "/", "secret"), {"text": "hi"})
    ((path, headers, body),) = server.taken
    assert (path, headers["authorization"], body) == ("/api/annotations", "Bearer secret", {"text": "hi"})


async def test_what_passes_by_itself_is_tried_again(server: Server, client: HttpClient) -> None:
    server.statuses = [503, 429]
    await notifier(client).post(Address(server.url), {})
    assert len(server.taken) == 3


async def test_tries_are_bounded(server: Server, client: HttpClient) -> None:
    server.statuses = [500] * 9
    with pytest.raises(Undelivered, match="500 said the server"):
        await notifier(client).post(Address(server.url), {})
    assert len(server.taken) == 3


@pytest.mark.parametrize("status", [400, 401, 404, 302])
async def test_what_no_repetition_mends_is_sent_once(server: Server, client: HttpClient, status: int) -> None:
    server.statuses = [status] * 3
    with pytest.raises(Undelivered, match=str(status)):
        await notifier(client).post(Address(server.url), {})
    assert len(server.taken) == 1


async def test_the_whole_is_bounded_in_time_also_where_a_server_asks_for_more(
    server: Server, client: HttpClient
) -> None:
    server.statuses, server.headers = [429] * 9, {"retry-after": "3600"}
    with pytest.raises(Undelivered, match=r"gave up after 0\.3 s"):
        await notifier(client, seconds=0.3).post(Address(server.url), {})
    assert len(server.taken) == 1, "it ended in the pause that the server had asked for"


async def test_of_an_error_without_end_only_the_beginning_is_read(server: Server, client: HttpClient) -> None:
    server.statuses, server.text = [400], "bad " * 10_000_000
    with pytest.raises(Undelivered) as told:
        await notifier(client).post(Address(server.url), {})
    assert len(str(told.value)) < 300


async def test_what_a_service_quotes_of_a_message_is_not_told(server: Server, client: HttpClient) -> None:
    server.statuses, server.text = [400], "invalid text: canary words; invalid token canary-token"
    with pytest.raises(Undelivered, match="400 invalid text: …; invalid token …-token") as told:
        await notifier(client).post(Address(server.url), {"text": "canary words"})
    assert "canary" not in str(told.value)


async def test_nobody_there_is_told_without_the_address_that_may_be_a_secret(client: HttpClient) -> None:
    address = Address("http://127.0.0.1:9/services/T0/B0/hush", {"authorization": "Bearer hush"})
    with pytest.raises(Undelivered) as told:
        await notifier(client).post(address, {"routing_key": "hush"})
    assert "hush" not in f"{told.value!r} {address!r}"
    assert "127.0.0.1" in str(told.value)
