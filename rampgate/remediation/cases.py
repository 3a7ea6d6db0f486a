"""Runs a case's Proposal on a cluster: applies it, waits until the workflow has ended, reads it, and deletes it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from evalcore.remediation.objects import UNREAD, Kinds, Object, Why, is_namespace
from evalcore.remediation.workflow import STEPS, children
from evalcore.scoring.items import Failed
from rampgate.input_files import fault, shown
from streams.cluster.port import Cluster, Unread
from streams.cluster.reading import read_workflow
from streams.cluster.watching import Known, Proposals
from streams.retry import Retry

LABEL: Final = ("app.kubernetes.io/managed-by", "rampgate")
"""The label of each Proposal that is run, and its value: by it `remediation clean` finds what is left."""
LOOK_SECONDS: Final = 0.2
"""From one look at what the watch says to the next; a look costs no request."""
_DELETING: Final = Retry(tries=3, longest=2.0)


class NoCase(ValueError):
    """A case that names no Proposal to run; the text says what is missing."""


class _NotDeleted(Exception):
    pass


@dataclass(frozen=True)
class CaseRunner:
    """Runs cases on a cluster, in namespaces that `proposals` follows. A workflow that has not ended after `wait`
    seconds is read as it is. `left` is called with each Proposal that could not be deleted, and why."""

    cluster: Cluster
    kinds: Kinds
    proposals: Proposals
    wait: float
    left: Callable[[str], None]

    async def answer(self, case: Mapping[str, Any]) -> dict[str, Any] | Failed:
        """Returns the case's answer as judges read it, or why there is none; the Proposal is deleted in either case,
        also where this is cancelled. Raises NoCase."""
        manifest = self._manifest(case)
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        began = time.monotonic()
        try:
            applied = await self.cluster.apply(manifest)
            if isinstance(applied, Unread):
                return Failed(f"{namespace}/{name} is not applied: {said(applied)}", applied.why in UNREAD)
            proposal = await self._ended(namespace, name)
            seconds = time.monotonic() - began
            what = f"{self.kinds.proposal}/{name}"
            workflow = await read_workflow(self.cluster, self.kinds, namespace, proposal, what)
        finally:
            # The one that cancels waits for this: nothing may stay on the cluster.
            await asyncio.shield(self._delete(namespace, name))
        if isinstance(proposal, Unread):
            return Failed(f"{namespace}/{name} can't be read: {said(proposal)}", proposal.why in UNREAD)
        named = children(proposal, self.kinds)[0]
        return {
            "output": workflow.summary,
            "proposal": {"namespace": namespace, "name": name},
            **workflow.fields(),
            "attempts": {step: sum(child.step == step for child in named) for step in STEPS},
            "seconds": round(seconds, 1),
        }

    async def _ended(self, namespace: str, name: str) -> Object | Unread:
        """Returns the Proposal once its workflow has ended or it can't be followed, or as it is when the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.wait):
                while True:
                    match self.proposals.known(namespace, name):
                        case Known(phase=phase) if phase.terminal:
                            break
                        case Unread(why=Why.FORBIDDEN | Why.NOT_FOUND):
                            break
                    await asyncio.sleep(LOOK_SECONDS)
        return await self.cluster.get(self.kinds.proposal, namespace, name)

    async def _delete(self, namespace: str, name: str) -> None:
        async def attempt() -> None:
            failed = await self.cluster.delete(self.kinds.proposal, namespace, name)
            if failed is not None:
                raise _NotDeleted(said(failed))

        try:
            await _DELETING.call(attempt, _NotDeleted)
        except _NotDeleted as error:
            remedy = f"`rampgate remediation clean {namespace}` deletes it"
            self.left(f"{namespace}/{name} is not deleted: {error}; {remedy}")

    def _manifest(self, case: Mapping[str, Any]) -> dict[str, Any]:
        told = _proposal_of(case)
        request = case.get("input")
        asked = {"request": request} if isinstance(request, str) else {}
        return {
            "apiVersion": f"{self.kinds.group}/{self.kinds.version}",
            "kind": self.kinds.proposal,
            "metadata": {
                "name": f"rampgate-{secrets.token_hex(8)}",
                "namespace": told["namespace"],
                "labels": dict([LABEL]),
            },
            "spec": {**asked, **told["spec"]},
        }


def namespace_of(case: Mapping[str, Any]) -> str:
    """Returns the namespace in which a case's Proposal runs. Raises NoCase."""
    namespace: str = _proposal_of(case)["namespace"]
    return namespace


def _proposal_of(case: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = case.get("metadata")
    told = metadata.get("proposal") if isinstance(metadata, Mapping) else None
    if isinstance(told, Mapping) and is_namespace(told.get("namespace")) and isinstance(told.get("spec"), Mapping):
        return told
    raise NoCase(fault("metadata.proposal", "{namespace, spec}, the Proposal to apply", shown(told)))


def said(unread: Unread) -> str:
    """Returns why something could not be read, in words."""
    return f"{unread.why}{f' ({unread.detail})' if unread.detail else ''}"
