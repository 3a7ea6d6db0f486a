"""The port `Cluster` on the real client, lightkube against a local API server, and on the twin that reads YAML."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from evalcore.remediation.objects import Kinds, Why
from streams.cluster.kubernetes import Access, KubernetesCluster
from streams.cluster.port import Cluster, Unread
from streams.cluster.twin import Twin, read_objects, written_objects
from tests.kube_api import TOKEN, KubeApi

MakeCluster = Callable[..., Cluster]


def proposal(name: str = "fix-oom", namespace: str = "shop", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid of {name}"}
    return {
        "apiVersion": "agentic.openshift.io/v1alpha1", "kind": "Proposal", "metadata": metadata,
        "spec": {"request": "the pod is out of memory"}, **fields,
    }  # fmt: skip


@pytest.fixture
def api(tmp_path: Path) -> Iterator[KubeApi]:
    with KubeApi([proposal()]).serving() as api:
        yield api


@pytest.fixture
def real(api: KubeApi, tmp_path: Path) -> KubernetesCluster:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    return KubernetesCluster(Kinds(), Access(api.url, token, seconds=0.5, watch_pause=0.1))


@pytest.fixture(params=["lightkube", "twin"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    if request.param == "twin":
        return Twin([proposal()])
    made: Cluster = request.getfixturevalue("real")
    return made


async def test_an_object_is_read_as_it_is(cluster: Cluster) -> None:
    found = await cluster.get("Proposal", "shop", "fix-oom")

    assert not isinstance(found, Unread)
    assert found["spec"] == {"request": "the pod is out of memory"}
    assert found["metadata"]["uid"] == "uid of fix-oom"
    await cluster.close()


async def test_what_is_not_there_is_a_value(cluster: Cluster) -> None:
    for namespace, name in (("shop", "other"), ("bank", "fix-oom")):
        found = await cluster.get("Proposal", namespace, name)
        assert isinstance(found, Unread)
        assert found.why is Why.NOT_FOUND
    await cluster.close()


@pytest.mark.parametrize("name", ["", ".", "..", "../secrets/key", "a/b", "a?watch=true", "Großes", "x" * 254, "a\nb"])
async def test_what_is_no_name_is_never_asked_for(cluster: Cluster, api: KubeApi, name: str) -> None:
    for found in (
        await cluster.get("Proposal", "shop", name),
        await cluster.get("Proposal", name, "fix-oom"),
        await cluster.apply({**proposal(), "metadata": {"name": name, "namespace": "shop"}}),
        await cluster.delete("Proposal", name, "fix-oom"),
    ):
        assert isinstance(found, Unread)
        assert found.why is Why.BAD_NAME
    assert api.requests == []
    await cluster.close()


async def test_applied_objects_are_there_and_deleted_ones_are_not(cluster: Cluster) -> None:
    made = await cluster.apply({**proposal("new"), "metadata": {"name": "new", "namespace": "shop"}})
    assert not isinstance(made, Unread)
    assert made["metadata"]["uid"]
    assert made["metadata"]["creationTimestamp"]

    assert not isinstance(await cluster.get("Proposal", "shop", "new"), Unread)
    assert await cluster.delete("Proposal", "shop", "new") is None
    assert isinstance(await cluster.get("Proposal", "shop", "new"), Unread)
    assert await cluster.delete("Proposal", "shop", "new") is None  # it was not there: so it is gone
    await cluster.close()


async def test_a_watch_gives_what_is_there_then_each_change(cluster: Cluster) -> None:
    async with asyncio.timeout(10), aclosing(cluster.watch("Proposal", "shop")) as changes:
        seen = [await anext(changes)]
        await cluster.apply(proposal(status={"conditions": []}))
        seen.append(await anext(changes))
        await cluster.apply(proposal("other", "bank"))  # another namespace
        await cluster.delete("Proposal", "shop", "fix-oom")
        seen.append(await anext(changes))

    assert [event for event, _ in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert seen[1][1]["status"] == {"conditions": []}
    await cluster.close()


async def test_children_go_with_their_owner_in_the_twin() -> None:
    child = {**proposal("analysis-1"), "kind": "AnalysisResult"}
    child["metadata"] = {**child["metadata"], "ownerReferences": [{"uid": "uid of fix-oom"}]}
    twin = Twin([proposal(), child])

    await twin.delete("Proposal", "shop", "fix-oom")

    assert twin.objects == {}


FAULTS = [
    ("forbidden", Why.FORBIDDEN), ("gone", Why.UNREACHABLE), ("throttled", Why.UNREACHABLE),
    ("broken", Why.UNREACHABLE), ("page", Why.UNREACHABLE), ("slow", Why.TIMED_OUT), ("dies", Why.UNREACHABLE),
    ("truncated", Why.MALFORMED), ("list", Why.MALFORMED), ("huge", Why.TOO_LARGE),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "why"), FAULTS)
async def test_every_fault_of_the_api_is_a_value(real: KubernetesCluster, api: KubeApi, fault: str, why: Why) -> None:
    api.faults["fix-oom"] = fault

    found = await real.get("Proposal", "shop", "fix-oom")

    assert isinstance(found, Unread)
    assert found.why is why
    assert "secret" not in found.detail
    assert TOKEN not in found.detail
    await real.close()


async def test_an_api_that_is_not_there_is_unreachable() -> None:
    cluster = KubernetesCluster(Kinds(), Access("http://127.0.0.1:9", seconds=2.0))
    for answer in (
        await cluster.get("Proposal", "shop", "fix-oom"),
        await cluster.apply(proposal()),
        await cluster.delete("Proposal", "shop", "fix-oom"),
    ):
        assert isinstance(answer, Unread)
        assert answer.why is Why.UNREACHABLE
    await cluster.close()


async def test_the_token_goes_with_each_request_and_a_new_one_is_read(api: KubeApi, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    cluster = KubernetesCluster(Kinds(), Access(api.url, token))
    await cluster.get("Proposal", "shop", "fix-oom")
    await cluster.close()

    assert api.tokens == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize("fault", ["forbidden", "gone", "throttled", "broken"])
async def test_a_watch_that_fails_says_so_and_begins_again(real: KubernetesCluster, api: KubeApi, fault: str) -> None:
    api.faults["watch shop"] = fault
    async with asyncio.timeout(10), aclosing(real.watch("Proposal", "shop")) as changes:
        first = await anext(changes)
        assert isinstance(first, Unread)
        assert first.why is (Why.FORBIDDEN if fault == "forbidden" else Why.UNREACHABLE)
        del api.faults["watch shop"]
        while isinstance(found := await anext(changes), Unread):
            pass
        assert found[1]["metadata"]["name"] == "fix-oom"
    await real.close()


async def test_a_watch_that_ends_at_once_is_not_asked_without_rest(api: KubeApi) -> None:
    """With the default pause: two requests a minute for a namespace, whatever the API does."""
    api.faults["watch shop"] = "ends"
    cluster = KubernetesCluster(Kinds(), Access(api.url))

    async def follow() -> None:
        async for _ in cluster.watch("Proposal", "shop"):
            pass

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(follow(), 1.0)
    assert len(api.requests) == 1
    await cluster.close()


async def test_one_huge_object_hides_no_other_from_a_watch(real: KubernetesCluster, api: KubeApi) -> None:
    api.apply(proposal(status={"text": "x" * 10_000_000}))
    api.apply(proposal("next"))

    async with asyncio.timeout(20), aclosing(real.watch("Proposal", "shop")) as changes:
        change = await anext(changes)
    assert not isinstance(change, Unread)
    assert change[1]["metadata"]["name"] == "next"
    await real.close()


async def test_no_character_of_a_text_ends_a_line_of_a_watch(real: KubernetesCluster, api: KubeApi) -> None:
    """The client takes more characters for the end of a line than an API does, so a status could end each watch."""
    text = "a\x85b\u2028c\u2029d\x0be"
    api.apply(proposal(status={"text": text}))

    async with asyncio.timeout(10), aclosing(real.watch("Proposal", "shop")) as changes:
        change = await anext(changes)
    assert not isinstance(change, Unread)
    assert change[1]["status"]["text"] == text
    await real.close()


def test_objects_are_read_from_yaml_as_an_api_answers_them() -> None:
    text = """
kind: Proposal
metadata: {name: a, namespace: shop, creationTimestamp: 2026-11-27T07:00:00Z}
---
# nothing
---
kind: List
items:
- {kind: AnalysisResult, metadata: {name: b, namespace: shop}, status: {confidence: 0.9, ok: true}}
"""
    first, second = read_objects(text)

    assert first["metadata"]["creationTimestamp"] == "2026-11-27T07:00:00Z"
    assert second["status"] == {"confidence": 0.9, "ok": True}
    assert read_objects(written_objects([first, second])) == [first, second]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: [", "no YAML"),
        ("a: &x 1\nb: *x", "aliases"),
        ("kind: Proposal\nmetadata: {name: a}", "metadata.namespace"),
        ("just a text", "kind"),
        ("kind: Proposal\nmetadata: {name: a/b, namespace: shop}", "metadata.name"),
    ],
)
def test_what_is_no_object_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_objects(text)
