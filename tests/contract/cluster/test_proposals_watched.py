"""Waiting for workflows: one watch a namespace, however many Proposals wait (Done when 4 and 5 of issue 36)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from evalcore.remediation.objects import Kinds, Object, Why
from evalcore.remediation.phase import Phase
from streams.cluster import watching
from streams.cluster.kubernetes import Access, KubernetesCluster
from streams.cluster.port import Unread
from streams.cluster.reading import read_workflow
from streams.cluster.twin import Twin
from streams.cluster.watching import Known, Proposals
from tests.kube_api import KubeApi
from tests.waiting import come

NAMESPACES = [f"shop-{number}" for number in range(5)]
COMPLETED = {"conditions": [{"type": "Analyzed", "status": "True"}]}


def proposal(namespace: str, name: str, uid: str = "first", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": uid}
    return {"kind": "Proposal", "metadata": metadata, "spec": {"request": "", "analysis": {}}, **fields}


@pytest.fixture
def api() -> Iterator[KubeApi]:
    with KubeApi().serving() as api:
        yield api


async def test_two_hundred_waiting_proposals_take_five_connections_and_five_requests(api: KubeApi) -> None:
    """At most 8 connections and 10 requests a minute, however often handlers look."""
    names = [(namespace, f"fix-{number}") for namespace in NAMESPACES for number in range(40)]
    for namespace, name in names:
        api.apply(proposal(namespace, name))
    cluster = KubernetesCluster(Kinds(), Access(api.url))
    proposals = Proposals(cluster, Kinds(), NAMESPACES)
    following = asyncio.create_task(proposals.run())
    await come(lambda: all(isinstance(proposals.known(*name), Known) for name in names))

    api.apply(proposal(*names[7], status=COMPLETED))
    await come(lambda: proposals.known(*names[7]) == Known("first", Phase.COMPLETED))
    for _ in range(100):
        assert [proposals.known(*name) for name in names].count(Known("first", Phase.IN_PROGRESS)) == 199

    assert len(api.requests) == 5
    assert len(api.peers) == 5
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following
    await cluster.close()


@pytest.mark.parametrize("fault", ["forbidden", "gone", "throttled", "broken", "ends"])
async def test_a_failing_api_gets_at_most_two_requests_a_minute_and_namespace(api: KubeApi, fault: str) -> None:
    """30 s lie between two beginnings of a watch; a minute of this test is a second."""
    api.faults |= {f"watch {namespace}": fault for namespace in NAMESPACES}
    cluster = KubernetesCluster(Kinds(), Access(api.url, watch_pause=Access().watch_pause / 60))
    proposals = Proposals(cluster, Kinds(), NAMESPACES)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(proposals.run(), 0.95)

    assert 5 <= len(api.requests) <= 10
    await cluster.close()


async def test_four_children_take_two_round_trips(api: KubeApi) -> None:
    steps = ("analysis", "execution", "verification", "escalation")
    status = {"steps": {step: {"results": [{"name": f"fix-{step}"}]} for step in steps}}
    api.apply(proposal("shop-0", "fix", status=status))
    for step in steps:
        kind = f"{step.capitalize()}Result"
        api.apply({**proposal("shop-0", f"fix-{step}", status={"success": True}), "kind": kind})
    cluster = KubernetesCluster(Kinds(), Access(api.url))
    await cluster.get("Proposal", "shop-0", "none")  # the connection is made
    api.delay, began = 0.5, time.monotonic()

    found = await cluster.get("Proposal", "shop-0", "fix")
    workflow = await read_workflow(cluster, Kinds(), "shop-0", found, "Proposal/fix")

    assert set(workflow.results) == set(steps)
    assert api.most_open == 4
    assert time.monotonic() - began < 1.4  # two answers of half a second, one after the other
    assert len(api.peers) <= 8
    await cluster.close()


async def test_an_unread_namespace_says_why_and_no_other_does() -> None:
    with KubeApi().serving() as api:
        api.apply(proposal("shop-1", "fix"))
        api.faults["watch shop-0"] = "forbidden"
        cluster = KubernetesCluster(Kinds(), Access(api.url, watch_pause=0.1))
        proposals = Proposals(cluster, Kinds(), NAMESPACES[:2])
        following = asyncio.create_task(proposals.run())
        await come(
            lambda: proposals.known("shop-0", "fix") is not None and proposals.known("shop-1", "fix") is not None
        )

        refused = proposals.known("shop-0", "fix")
        assert isinstance(refused, Unread)
        assert refused.why is Why.FORBIDDEN
        assert proposals.known("shop-1", "fix") == Known("first", Phase.IN_PROGRESS)
        assert proposals.known("shop-1", "other") is None

        api.apply(proposal("shop-0", "fix"))
        del api.faults["watch shop-0"]
        await come(lambda: isinstance(proposals.known("shop-0", "fix"), Known))
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await cluster.close()


async def noted(twin: Twin, proposals: Proposals, *changes: Object) -> None:
    following = asyncio.create_task(proposals.run())
    await asyncio.sleep(0)
    for change in changes:
        await twin.apply(change)
    await asyncio.sleep(0.05)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_the_first_uid_of_a_name_is_kept_when_it_is_made_again() -> None:
    twin = Twin([proposal("shop-0", "fix")])
    proposals = Proposals(twin, Kinds(), NAMESPACES)
    following = asyncio.create_task(proposals.run())
    await come(lambda: proposals.known("shop-0", "fix") is not None)

    await twin.delete("Proposal", "shop-0", "fix")
    await come(lambda: isinstance(proposals.known("shop-0", "fix"), Unread))
    gone = proposals.known("shop-0", "fix")
    assert isinstance(gone, Unread)
    assert gone.why is Why.NOT_FOUND

    await twin.apply(proposal("shop-0", "fix", uid="second", status=COMPLETED))
    await come(lambda: isinstance(proposals.known("shop-0", "fix"), Known))
    assert proposals.known("shop-0", "fix") == Known("first", Phase.COMPLETED)
    assert proposals.first_uid("shop-0", "fix") == "first"
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_a_namespace_that_no_vertical_names_is_not_followed() -> None:
    twin = Twin([proposal("bank", "fix")])
    proposals = Proposals(twin, Kinds(), NAMESPACES)
    await noted(twin, proposals)

    refused = proposals.known("bank", "fix")
    assert isinstance(refused, Unread)
    assert refused.why is Why.NOT_ALLOWED


async def test_what_is_remembered_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "REMEMBERED", 10)
    twin = Twin()
    proposals = Proposals(twin, Kinds(), NAMESPACES)
    await noted(twin, proposals, *(proposal("shop-0", f"fix-{number}") for number in range(25)))

    assert sum(isinstance(proposals.known("shop-0", f"fix-{number}"), Known) for number in range(25)) == 10


@pytest.mark.parametrize(
    "hostile",
    [{"metadata": None}, {"status": "x"}, {"status": {"conditions": {"a": 1}}}, {"spec": [1]}, {"status": None}],
)
async def test_no_object_stops_the_watch(hostile: dict[str, Any]) -> None:
    twin = Twin()
    proposals = Proposals(twin, Kinds(), NAMESPACES)
    proposals._note("shop-0", "ADDED", {**proposal("shop-0", "odd"), **hostile})
    await noted(twin, proposals, proposal("shop-0", "next"))

    assert proposals.known("shop-0", "next") == Known("first", Phase.IN_PROGRESS)
