"""The `rules` commands run against a local Opik, and what they left there as the official client reads it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from evalcore.registry.opik_rules import OpikRule
from evalcore.registry.registry import Registry
from evalcore.reloading import ReloadingRegistry
from evalcore.yaml.findings import ValidationResult
from streams.opik.client import OpikClient
from streams.opik.rules import OpikRules
from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.unit.rampgate.checks.score_commands import said
from tests.unit.rampgate.cli.registry_copies import Ran, copied

EVALUATORS = "automations/evaluators"
PROJECTS = {"receipts": "receipts-eval", "rewards_assistant": "consumer-agent"}
QUALITY = "rules/response_quality.yaml"


@dataclass
class Rig:
    """`configs` is a copy of the shipped registry; `key` that of the server, where it wants one."""

    configs: Path
    opik: ScriptedOpik
    key: str | None = None

    async def run(self, *arguments: str, **environment: str) -> Ran:
        """As `main` runs it, in a thread, since the server lives in this loop."""
        env = {
            "RAMPGATE_OPIK": self.opik.url,
            "RAMPGATE_OPIK_RETRY_SECONDS": "0",
            "RAMPGATE_CONFIGS": str(self.configs),
            "RAMPGATE_HTTP": "127.0.0.1:9",
            "COLUMNS": "200",
            **environment,
        }
        return await asyncio.to_thread(_run, arguments, env)

    async def sync(self, *more: str, **environment: str) -> Ran:
        return await self.run("rules", "sync", "--yes", *more, **environment)

    async def there(self, vertical: str = "receipts") -> dict[str, OpikRule]:
        """The rules of a vertical's project by judge; those of others by name."""
        client = OpikClient(self.opik.url, "default", self.key, 5.0, 2)
        try:
            gateway = OpikRules(client, 1.0)
            rules = await gateway.rules(await gateway.project_id(PROJECTS[vertical]))
        finally:
            await client.close()
        return {rule.metadata.get("judge_id", rule.name): rule for rule in rules}

    async def writes(self) -> dict[str, int]:
        """Requests so far that could change something, by method and path; nothing is left out but the test's own."""
        found = await self.opik.requests()
        return {name: count for name, count in found.items() if EVALUATORS in name and not name.startswith("GET")}


async def made(folder: Path, opik: ScriptedOpik, key: str | None = None) -> Rig:
    """A copy of the registry in `folder`; `opik` has both verticals' projects, and no rule."""
    for project in PROJECTS.values():
        await opik.call("POST", "/v1/private/projects", {"name": project})
    return Rig(two_verticals(folder), opik, key)


def two_verticals(folder: Path) -> Path:
    """The shipped registry in a folder of its own, with the verticals of PROJECTS: where its `configs` is."""
    configs = copied(folder)
    for file in (configs / "verticals").glob("*.yaml"):
        if file.stem not in PROJECTS:
            file.unlink()
    return configs


def _run(arguments: tuple[str, ...], env: dict[str, str]) -> Ran:
    # Logging is the whole process's, and would go on writing to this call's stderr.
    with patch("rampgate.logs.configure_logs"):
        return Ran(*said(*arguments, **env))


class Files:
    """What a worker's registry reads: the files of one folder."""

    def __init__(self) -> None:
        self.live: ReloadingRegistry | None = None

    def use(self, root: Path, ttl: float | None) -> None:
        self.live = ReloadingRegistry(root, ttl)

    def loaded(self) -> Registry | None:
        assert self.live is not None
        return self.live.loaded()

    def refresh(self) -> ValidationResult:
        assert self.live is not None
        return self.live.refresh()
