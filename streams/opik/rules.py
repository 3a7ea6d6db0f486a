"""A vertical's judges as automation rules of its own Opik project (PC5 FR-7, §5.6).

Reading needs no right to write. Only `apply` writes, and only into the project it is given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from agents.ports import Unavailable
from evalcore.registry.opik_rules import LLM_JUDGE, OpikRule, OutputField, Plan, TraceFilter
from streams.opik.client import ApiError, OpikClient, OutOfTries, persist, reason
from streams.retry import RETRIED_STATUSES

PAGE = 100
TOO_MANY = 429
EVALUATORS = "automations/evaluators"
FILTER_FIELDS = ("field", "operator", "key", "value")
T = TypeVar("T")


class Refused(Exception):
    """Opik takes the key and not the request; says which rule and why."""


class NoProject(Exception):
    """The vertical's project is not there. A sync makes none: the vertical owns it."""


class OpikRules:
    """Raises Unauthorized where Opik refuses the key and Unavailable where it can't be reached."""

    def __init__(self, client: OpikClient, retry_seconds: float) -> None:
        self._client, self._seconds = client, retry_seconds

    async def project_id(self, name: str) -> str:
        """Raises NoProject."""
        try:
            found = await self._call(partial(self._client.call, "POST", "projects/retrieve", {"name": name}))
        except ApiError as error:
            if error.status_code == 404:
                raise NoProject(f"Opik has no project {name!r}; its owner creates it there first") from error
            raise Refused(f"project {name}: {reason(error)}") from error
        return str(found["id"])

    async def rules(self, project_id: str) -> list[OpikRule]:
        """All rules of the project, of every kind."""
        found: list[OpikRule] = []
        page = 1
        while True:
            asked: dict[str, str | int] = {"project_id": project_id, "page": page, "size": PAGE}
            find = partial(self._client.call, "GET", EVALUATORS, query=asked)
            try:
                answer = await self._call(find)
            except ApiError as error:
                raise Refused(f"list of rules: {reason(error)}") from error
            content = answer.get("content") or []
            found += [rule_of(item) for item in content]
            if not content or page * PAGE >= (answer.get("total") or 0):
                return found
            page += 1

    async def apply(self, project_id: str, plan: Plan) -> None:
        """Carry out a plan, one rule after another; what was done stands when a later one fails, and a plan made anew
        has only the rest."""
        for rule in (*plan.create, *(update.rule for update in plan.update)):
            await self.write(project_id, rule)

    async def write(self, project_id: str, rule: OpikRule) -> None:
        """Create the rule, or update the one whose id it has. A create that gets no answer is not tried again, for it
        may have been done. Raises Refused."""
        body = {"type": LLM_JUDGE, "project_ids": [project_id], "code": code_of(rule), **fields_of(rule)}
        if rule.id:
            path = f"{EVALUATORS}/{quote(rule.id, '')}"
            await self._write(rule, partial(self._client.call, "PATCH", path, body))
        else:
            await self._write(rule, partial(_once, partial(self._client.call, "POST", EVALUATORS, body)))

    async def _write(self, rule: OpikRule, call: Callable[[], Awaitable[object]]) -> None:
        try:
            await self._call(call)
        except ApiError as error:
            raise Refused(f"rule {rule.name!r}: {reason(error)}") from error

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            return await persist(call, seconds=self._seconds)
        except OutOfTries as error:
            raise Unavailable(f"Opik: {error.last}") from error


async def _once(call: Callable[[], Awaitable[T]]) -> T:
    """Raises Unavailable where no answer says whether it was done; 429 says that it was not, and may be tried again."""
    try:
        return await call()
    except ApiError as error:
        if error.status_code in RETRIED_STATUSES - {TOO_MANY}:
            raise Unavailable(f"Opik: {error.status_code}: {reason(error)}") from error
        raise
    except (httpx.HTTPError, OSError) as error:
        raise Unavailable(f"Opik: {type(error).__name__}: {error}".rstrip(": ")) from error


def code_of(rule: OpikRule) -> dict[str, Any]:
    """The judge's model, prompt, variables and output as Opik's API has them."""
    return {
        "model": {"name": rule.model, "temperature": rule.temperature},
        "messages": [{"role": role, "content": content} for role, content in rule.messages],
        "variables": dict(rule.variables),
        "schema": [{"name": one.name, "type": one.type, "description": one.description} for one in rule.output],
    }


def fields_of(rule: OpikRule) -> dict[str, Any]:
    """`filters` always: what is left out stays as it was."""
    filters = [
        {"field": one.field, "operator": one.operator, "key": one.key, "value": one.value} for one in rule.filters
    ]
    return {
        "name": rule.name,
        "sampling_rate": rule.sampling_rate,
        "enabled": rule.enabled,
        "action": "evaluator",
        "filters": filters,
    }


def rule_of(item: dict[str, Any]) -> OpikRule:
    """A rule as Opik lists it; one of another kind, or with parts we never write, is told by its name and kind."""
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
