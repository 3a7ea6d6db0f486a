"""The registry as a process serves it: loaded at start, refreshed by an operator or by time, never half-loaded (PC5
FR-10, §5.7). Broken files leave the served version in place, and every answer says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Protocol

import structlog

from agents.ports import Unavailable
from evalcore.registry.registry import Registry
from evalcore.stopping import heed_cancel
from evalcore.yaml.findings import Finding, ValidationResult
from rampgate.registry.metrics import RegistryMetrics
from rampgate.registry.view import eval_config, finding_answers, no_category
from schemas.answers import Check, EvalConfig, Refresh
from schemas.answers import Finding as FindingAnswer
from schemas.counting import counted
from schemas.dead_letters import clean
from streams.metrics import Metrics

SUMMARY = 3
"""The most findings that an answer about something other than the findings quotes."""
log = structlog.get_logger(__name__)


class Source(Protocol):
    """The source of the registry: `evalcore.reloading`. `refresh` reads files and may block, so it runs in a thread.
    `ttl` None: the source looks for new files only on `refresh`."""

    def use(self, root: Path, ttl: float | None) -> None: ...

    def loaded(self) -> Registry | None: ...

    def refresh(self) -> ValidationResult: ...


def today() -> date:
    return datetime.now(UTC).date()


class ServedRegistry:
    """The served registry. `refresh` never raises for broken files; lookups use memory only, also during a refresh."""

    def __init__(
        self,
        root: Path,
        metrics: Metrics,
        source: Source,
        day: Callable[[], date] = today,
        joined: Collection[str] | None = None,
    ) -> None:
        """`joined`: the verticals that this process knew when it started; None where it joins no turns."""
        self._root, self._source, self._joined = root.absolute(), source, joined
        self._metrics, self._lookups = RegistryMetrics(metrics, day), metrics.registry_lookup
        self._lock = asyncio.Lock()
        self._asked = asyncio.Event()
        self._last: Refresh | None = None
        source.use(self._root, None)  # only `run` looks for new files, so that each look is counted and logged

    def ask(self) -> None:
        """Make `run` refresh soon. For the handler of a signal."""
        self._asked.set()

    async def run(self, every: float) -> None:
        """Load the registry unless it is loaded, then refresh on `ask` and every `every` seconds (0: on `ask` only)."""
        why = "start" if self._last is None else await self._due(every)
        while True:
            self._asked.clear()
            try:
                await self.refresh(why)
            except Exception:
                log.exception("registry_refresh_failed", why=why)
            why = await self._due(every)

    async def _due(self, every: float) -> str:
        """Wait until it is time to refresh; return the reason."""
        try:
            await asyncio.wait_for(self._asked.wait(), every or None)
            why = "signal"
        except TimeoutError:
            why = "time"
        heed_cancel()
        return why

    async def refresh(self, why: str) -> Refresh:
        """Read the files again; one at a time, since each reads all of them."""
        async with self._lock:
            before = self._hash()
            try:
                empty, result = await asyncio.to_thread(self._read)
            except Exception as error:
                log.exception("registry_refresh_failed", why=why)
                message = f"{type(error).__name__}: {error}"
                empty, result = (
                    False,
                    ValidationResult(self._root, (Finding(str(self._root), 0, 0, "", "read", message),)),
                )
            self._last = answer = self._settle(result, empty, before)
            self._tell(answer, why)
            self._metrics.moved(answer, result, self._source.loaded())
            return answer

    def eval_config(self, vertical: str | None, category: str | None) -> EvalConfig:
        """Raises Unavailable where nothing is loaded, UnknownName, and BadQuery without a
        category."""
        registry = self._source.loaded()
        if registry is None:
            raise Unavailable(self._nothing() + self._first_findings())
        if not category:
            raise no_category(registry)
        with self._lookups.time():
            return eval_config(registry, vertical or None, category)

    def check(self) -> Check:
        """The registry's check for /readyz: ok once the files were read, even with errors. Signals are joined without a
        registry, and an older version still decides."""
        last, registry = self._last, self._source.loaded()
        if last is None:
            return Check(ok=False, detail="not loaded yet")
        if registry is None:
            return Check(ok=True, detail=self._nothing())
        return Check(ok=True, detail=last.message)

    def _read(self) -> tuple[bool, ValidationResult]:
        return is_empty(self._root), self._source.refresh()

    def _hash(self) -> str | None:
        registry = self._source.loaded()
        return registry.config_hash if registry is not None else None

    def _settle(self, result: ValidationResult, empty: bool, before: str | None) -> Refresh:
        registry, after = self._source.loaded(), self._hash()
        judges = len(registry.rules()) if registry is not None else 0
        errors, warnings = result.errors, result.warnings
        if after is not None and result.valid:
            outcome = "unchanged" if after == before else "loaded"
            message = f"{judges} judges, version {after}" + (
                f", {counted(len(warnings), 'warning')}" if warnings else ""
            )
            if new := self._new_verticals():
                one = "counts" if len(new) == 1 else "count"
                message += f"; {', '.join(new)} {one} as unregistered until this worker is restarted"
        elif empty and after is None:
            outcome, message = "empty", f"the registry is empty: no rule files and no manifest in {self._root}"
        else:
            kept = f"version {after} of before keeps serving" if after is not None else "no version serves"
            outcome, message = "refused", f"{counted(len(errors), 'error')} in {self._root}; {kept}"
        return Refresh(
            outcome=outcome,
            message=clean(message, 1000),
            config_hash=after,
            previous_config_hash=before,
            judges=judges,
            error_count=len(errors),
            warning_count=len(warnings),
            errors=finding_answers(errors),
            warnings=finding_answers(warnings),
        )

    def _new_verticals(self) -> list[str]:
        if self._joined is None:
            return []
        return sorted({file.stem for file in (self._root / "verticals").glob("*.yaml")} - set(self._joined))

    def _nothing(self) -> str:
        return self._last.message if self._last is not None else "the registry is not loaded yet"

    def _first_findings(self) -> str:
        errors = self._last.errors if self._last is not None and self._last.outcome == "refused" else []
        return "".join(f"; {place(error)}: {error.message}" for error in errors[:SUMMARY])

    def _tell(self, answer: Refresh, why: str) -> None:
        said = {"why": why, "config_hash": answer.config_hash, "message": answer.message}
        if answer.outcome == "refused":
            log.error("registry_refused", errors=[f"{place(e)}: {e.message}" for e in answer.errors[:20]], **said)
        elif answer.outcome == "empty":
            log.warning("registry_empty", hint=f"RAMPGATE_CONFIGS names the folder, now {self._root}", **said)
        elif answer.outcome == "loaded":
            log.info("registry_loaded", previous=answer.previous_config_hash, **said)
        else:
            log.debug("registry_unchanged", **said)


def is_empty(root: Path) -> bool:
    """Tells whether there is no registry at all, as opposed to a broken one."""
    rules = root / "rules"
    return not (root / "evaluation_manifest.yaml").exists() and next(rules.rglob("*.yaml"), None) is None


def place(finding: FindingAnswer) -> str:
    return f"{finding.file}:{finding.line}" if finding.line else finding.file
