"""Reads and writes a vertical's judges as automation rules of its own Opik project (PC5 FR-7, §5.6).

Reading needs no right to write. Only `write` and `delete` write, and only into the project that they are given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from agents.ports import Unavailable
from evalcore.registry.opik_rules import LLM_JUDGE, OpikRule, OutputField, TraceFilter
from streams.opik.client import ApiError, OpikClient, Query, Refused, numbered_pages, or_none, persist, reason
from streams.retry import RETRIED_STATUSES, reason_of

PAGE = 100
TOO_MANY = 429
EVALUATORS = "automations/evaluators"
FILTER_FIELDS = ("field", "operator", "key", "value")
T = TypeVar("T")


class NoProject(Exception):
    """Opik has no such project. A sync creates none: the vertical owns it."""


class OpikRules:
    """The rules of Opik's projects. Raises Unauthorized where Opik refuses the key, Unavailable where it can't be
    reached, Refused where it refuses a request."""

    def __init__(self, client: OpikClient, retry_seconds: float) -> None:
        self._client, self._seconds = client, retry_seconds

    async def project_id(self, name: str) -> str:
        """The id of the project. Raises NoProject."""
        ask = partial(self._client.call, "POST", "projects/retrieve", {"name": name})
        project = await self._call(f"project {name}", lambda: or_none(ask()))
        if project is None:
            raise NoProject(f"Opik has no project {name!r}; its owner creates it there first")
        return str(project["id"])

    async def rules(self, project_id: str) -> list[OpikRule]:
        """All rules of the project, of every kind."""

        async def ask(page: Query) -> dict[str, Any]:
            query = {"project_id": project_id, **page}
            return await self._call("list of rules", partial(self._client.call, "GET", EVALUATORS, query=query))

        return [rule_of(item) async for page in numbered_pages(ask, PAGE) for item in page]

    async def write(self, project_id: str, rule: OpikRule) -> None:
        """Create the rule, or update the rule whose id it has. A creation without an answer is not repeated, since Opik
        may have carried it out."""
        body = {"type": LLM_JUDGE, "project_ids": [project_id], "code": code_of(rule), **fields_of(rule)}
        if rule.id:
            call = partial(self._client.call, "PATCH", f"{EVALUATORS}/{quote(rule.id, '')}", body)
        else:
            call = partial(_once, partial(self._client.call, "POST", EVALUATORS, body))
        await self._call(f"rule {rule.name!r}", call)

    async def delete(self, project_id: str, rules: Sequence[str]) -> None:
        """Delete rules of the project, by their ids. Those that are gone already make no difference."""
        path, query = f"{EVALUATORS}/delete", {"project_id": project_id}
        await self._call("rules", partial(self._client.call, "POST", path, {"ids": list(rules)}, query=query))

    async def _call(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await persist(call, seconds=self._seconds)
        except ApiError as error:
            raise Refused(f"{what}: {reason(error)}") from error


async def _once(call: Callable[[], Awaitable[T]]) -> T:
    """The call's result. Raises Unavailable where no answer says whether Opik carried it out; 429 says that it did not,
    and may be repeated."""
    try:
        return await call()
    except ApiError as error:
        if error.status_code in RETRIED_STATUSES - {TOO_MANY}:
            raise Unavailable(f"Opik: {error.status_code}: {reason(error)}") from error
        raise
    except (httpx.HTTPError, OSError) as error:
        raise Unavailable(f"Opik: {reason_of(error)}") from error


def code_of(rule: OpikRule) -> dict[str, Any]:
    """The judge's model, prompt, variables and output as Opik's API has them."""
    return {
        "model": {"name": rule.model, "temperature": rule.temperature},
        "messages": [{"role": role, "content": content} for role, content in rule.messages],
        "variables": dict(rule.variables),
        "schema": [asdict(one) for one in rule.output],
    }


def fields_of(rule: OpikRule) -> dict[str, Any]:
    """The rule's other fields. Always with `filters`, since Opik keeps what an update leaves out."""
    return {
        "name": rule.name,
        "sampling_rate": rule.sampling_rate,
        "enabled": rule.enabled,
        "action": "evaluator",
        "filters": [asdict(one) for one in rule.filters],
    }


def rule_of(item: dict[str, Any]) -> OpikRule:
    """A rule out of Opik's list. A rule of another kind, or with parts that we never write, has only name and kind."""
    code = item.get("code") if item.get("type") == LLM_JUDGE else None
    code = code if isinstance(code, dict) else {}
    model = code.get("model") or {}
    return OpikRule(
        name=item["name"],
        model=str(model.get("name")),
        temperature=model.get("temperature") or 0.0,
        sampling_rate=1.0 if item.get("sampling_rate") is None else item["sampling_rate"],
        enabled=item.get("enabled") is not False,
        messages=tuple((str(one.get("role")), str(one.get("content"))) for one in code.get("messages") or ()),
        variables=dict(code.get("variables") or {}),
        output=tuple(
            OutputField(str(one.get("name")), str(one.get("type")), str(one.get("description")))
            for one in code.get("schema") or ()
        ),
        filters=tuple(
            TraceFilter(*("" if one.get(name) is None else str(one[name]) for name in FILTER_FIELDS))
            for one in item.get("filters") or ()
        ),
        id=str(item.get("id")),
        kind=str(item.get("type")),
        projects=tuple(str(one["project_id"]) for one in item.get("projects") or ()),
    )
