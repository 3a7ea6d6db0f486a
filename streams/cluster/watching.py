"""Follows the Proposals of some namespaces, one watch each, so that handlers need not ask the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from evalcore.remediation.objects import Kinds, Object, Why
from evalcore.remediation.phase import Phase, derive_phase
from streams.cluster.port import Cluster, Unread

REMEMBERED: Final = 50_000
"""Proposals of which the uid and phase are kept; the longest known goes first."""


@dataclass(frozen=True)
class Known:
    """What the watch says of a Proposal. `uid`: that of the first one seen under its name; `phase`: of the newest."""

    uid: str
    phase: Phase
    deleted: bool = False


class Proposals:
    """Knows the phase of each Proposal in some namespaces, while `run` follows them. A look costs no request and never
    waits; the Proposal itself is read when it has ended."""

    def __init__(self, cluster: Cluster, kinds: Kinds, namespaces: Iterable[str]) -> None:
        self._cluster, self._kinds, self._namespaces = cluster, kinds, frozenset(namespaces)
        self._known: dict[tuple[str, str], Known] = {}
        self._unread: dict[str, Unread] = {}

    async def run(self) -> None:
        """Follows all namespaces until cancelled; a cluster that fails is asked again."""
        async with asyncio.TaskGroup() as group:
            for namespace in sorted(self._namespaces):
                group.create_task(self._follow(namespace), name=f"proposals of {namespace}")

    def known(self, namespace: str, name: str) -> Known | Unread | None:
        """Returns what is known of a Proposal; why its namespace can't be followed, where nothing is known of it yet;
        `not_found` once it was deleted; None while it has not been seen. A namespace that is not followed is
        `not_allowed`."""
        if namespace not in self._namespaces:
            return Unread(Why.NOT_ALLOWED, f"{namespace} is not among proposal_namespaces")
        seen = self._known.get((namespace, name))
        if seen is not None and seen.deleted:
            return Unread(Why.NOT_FOUND, "was deleted")
        return seen or self._unread.get(namespace)

    def first_uid(self, namespace: str, name: str) -> str | None:
        """Returns the uid under which a Proposal of this name was first seen, as `standing` takes it."""
        seen = self._known.get((namespace, name))
        return seen.uid if seen is not None else None

    async def _follow(self, namespace: str) -> None:
        async for change in self._cluster.watch(self._kinds.proposal, namespace):
            if isinstance(change, Unread):
                self._unread[namespace] = change
            else:
                self._unread.pop(namespace, None)
                self._note(namespace, *change)

    def _note(self, namespace: str, event: str, proposal: Object) -> None:
        metadata, status, spec = (_mapping(proposal.get(part)) for part in ("metadata", "status", "spec"))
        name = (namespace, str(metadata.get("name")))
        conditions = status.get("conditions")
        now = Known(
            str(metadata.get("uid")),
            derive_phase(conditions if isinstance(conditions, list) else [], spec),
            event == "DELETED",
        )
        before = self._known.get(name)
        self._known[name] = replace(now, uid=before.uid) if before is not None else now
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
