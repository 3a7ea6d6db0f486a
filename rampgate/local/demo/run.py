"""Runs `rampgate demo`: an embedded stack and a worker, a day of traffic, one dead letter explained and replayed, ramp
steps with their verdicts, one of them of remediation workflows, and two pull requests compared with a suite."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import orjson
from rich.console import Console
from rich.live import Live

from agents.ports import Unavailable
from rampgate.console import Failure
from rampgate.local.demo import workflows
from rampgate.local.demo.candidates import CANDIDATES, shadow_traffic
from rampgate.local.demo.day import Day, iso, make_day, uuid7
from rampgate.local.demo.gates import ask_gates, shown
from rampgate.local.demo.pull_requests import pull_requests
from rampgate.local.demo.pull_requests import shown as shown_pulls
from rampgate.local.demo.registry import WARNS, demo_registry, logged
from rampgate.local.demo.show import NEXT, explained, progress_bar, scene
from rampgate.local.services.stack import Stack
from rampgate.overrides import publish
from rampgate.report.console import table
from rampgate.report.state import conservation_section, coverage_section
from rampgate.settings import SECRETS, Settings
from rampgate.wiring import Parts, make_parts
from schemas.answers import Conservation, CoverageAnswer
from schemas.topics import Topics
from streams.queries.conservation import conservation
from streams.queries.coverage import coverage

VERSIONS = (*CANDIDATES, workflows.REMEDIATOR)
SECONDS = 120.0
"""Longest time for the whole day, on a slow machine too."""
WAIT_FOR_TRACE = 4.0


class Demo:
    """One run. `quiet` prints nothing; the caller prints the document that `run` returns."""

    def __init__(self, *, seed: int, turns: int, quiet: bool) -> None:
        self.seed, self.turns, self.quiet = seed, turns, quiet
        self.console = Console(quiet=quiet, stderr=quiet)
        self.started = time.monotonic()

    def run(self) -> dict[str, Any]:
        topics = Topics()
        self.console.print(
            "[bold]rampgate demo[/]: a day of an assistant's traffic, embedded; nothing here leaves this machine."
        )
        with (
            Stack("embedded", opik=True, model=True) as stack,
            tempfile.TemporaryDirectory(prefix="rampgate-demo-") as folder,
        ):
            stack.kafka.create_topics(topics.all)
            key, now = Path(folder, "seal.key"), time.time_ns() // 1_000_000
            key.write_text(secrets.token_hex())
            objects = Path(folder, "cluster.yaml")
            objects.write_text(workflows.cluster(now))
            settings = Settings(
                kafka=stack.kafka.bootstrap,
                redis=stack.redis.url,
                opik=stack.opik.url,
                model_url=stack.model.url,
                configs=demo_registry(Path(folder), datetime.now(UTC).date()),
                seal_key_file=key,
                cluster_url=f"file:{objects}",
                http="127.0.0.1:0",
                write=True,
                live_judging=False,  # it would judge the whole day beside the three versions
                missing_trace_seconds=WAIT_FOR_TRACE,
                trace_lookup_seconds=0.5,
                opik_lookups_per_minute=600,
                log_level="warning",
            )
            env = environment(settings)
            log = Path(folder, "worker.log")
            with log.open("wb") as output:
                worker = subprocess.Popen([sys.executable, "-m", "rampgate", "worker"], env=env, stderr=output)
            try:
                return asyncio.run(self._pass_by(settings, topics, worker, env, Path(folder), now))
            except Unavailable as error:
                raise Failure(f"{error}\n{log.read_text()[-2000:]}") from error
            finally:
                worker.kill()  # what it did goes with the stack, so there is nothing to end in order
                worker.wait()

    async def _pass_by(
        self,
        settings: Settings,
        topics: Topics,
        worker: subprocess.Popen[bytes],
        env: dict[str, str],
        folder: Path,
        now: int,
    ) -> dict[str, Any]:
        await publish(settings, [logged(datetime.now(UTC).date())])
        day = make_day(self.seed, self.turns, now, topics)
        shadow = shadow_traffic(self.seed, now, topics)
        day.messages += shadow
        day.told[f"shadow turns of {len(CANDIDATES)} versions that ask to ramp"] = len(shadow)
        remediated = workflows.traces(self.seed, now, topics)
        day.messages += remediated
        day.told["traces that name a remediation workflow"] = workflows.TRACES
        parts = make_parts(settings)
        pulls = asyncio.create_task(asyncio.to_thread(pull_requests, folder, env))
        try:
            self.console.print(
                f"seed {self.seed}: {self.turns} turns, {len(day.messages)} events; "
                + ", ".join(f"{count} {what}" for what, count in day.told.items())
            )
            await fill_opik(settings.opik, day.opik)
            covered = await self._watch(parts, day, worker)
            self.console.print(table(coverage_section(covered)))
            completed = await workflows.completed(parts, remediated)
            asking = asyncio.create_task(ask_gates(parts, self.seed, VERSIONS))
            try:
                replayed = await self._replay(parts, settings, day, env)
                verdicts = await asking
            finally:
                asking.cancel()
            self._tell(verdicts)
            self.console.print(workflows.shown(completed, verdicts[-1]), shown(workflows.REMEDIATOR, verdicts[-1]))
            pulled = await pulls
            self.console.print(shown_pulls(pulled))
            balance = await counted(parts, len(verdicts))
            self.console.print(table(conservation_section(balance)))
        finally:
            await parts.close()
        seconds = time.monotonic() - self.started
        self.console.print(f"\n{NEXT}\n[dim]took {seconds:.0f} s[/]")
        return {
            "seed": self.seed,
            "turns": self.turns,
            "events": len(day.messages),
            "coverage": covered.model_dump(),
            "conservation": balance.model_dump(),
            "replayed": replayed,
            "verdicts": verdicts[:-1],
            "workflow": {"completed": completed, "verdict": verdicts[-1]},
            "pull_requests": pulled,
            "seconds": round(seconds, 1),
        }

    def _tell(self, verdicts: list[dict[str, Any]]) -> None:
        self.console.print(
            "\n[bold]Three versions ask to ramp.[/] A stand-in for a model judges their traces, by what each says of "
            f"itself.\nThe registry is a copy of the shipped one, in which {WARNS} only warns at pre_ramp, by an "
            "audited override; see docs/verdicts.md.",
        )
        self.console.print(*(shown(one, verdict) for one, verdict in zip(CANDIDATES, verdicts[:-1], strict=True)))

    async def _watch(self, parts: Parts, day: Day, worker: subprocess.Popen[bytes]) -> CoverageAnswer:
        """Send the day and show it pass by; returns once every record is in a final state."""
        bar = progress_bar()
        sent = bar.add_task("sent     ", total=len(day.messages))
        settled = bar.add_task("settled  ", total=len(day.messages))
        sending = asyncio.create_task(send(parts, day, lambda count: bar.update(sent, completed=count)))
        deadline = time.monotonic() + SECONDS
        with Live(bar, console=self.console, refresh_per_second=8, transient=True) as live:
            while True:
                covered, balance = await ask(parts)
                consumed = sum(row.consumed for row in balance.signals.values())
                parked = sum(row.parked for row in balance.signals.values())
                bar.update(settled, completed=consumed - parked)
                live.update(scene(bar, covered, balance))
                if sending.done() and consumed >= len(day.messages) + workflows.TRACES and parked == 0:
                    await sending
                    return covered
                if worker.poll() is not None:
                    raise Unavailable(f"the worker ended with code {worker.returncode}")
                if time.monotonic() > deadline:
                    raise Unavailable(f"after {SECONDS:.0f} s {consumed} of {len(day.messages)} records were consumed")
                await asyncio.sleep(0.15)

    async def _replay(self, parts: Parts, settings: Settings, day: Day, env: dict[str, str]) -> dict[str, Any]:
        """Explain the dead letter of a thumb without a trace, let the trace turn up, and replay it."""
        self.console.print(
            explained(
                "A dead letter, explained",
                f"The user's thumb on [bold]{day.orphan}[/] has no trace: none was recorded, and after "
                f"{WAIT_FOR_TRACE:.0f} s of looking it went to the dead-letter topic, bytes and all.\n"
                "Now suppose the trace turns up in Opik. One command replays what it made possible:",
            )
        )
        trace_id = uuid7(time.time_ns() // 1_000_000, random.Random(self.seed))  # noqa: S311 - an id, not a secret
        now = iso(time.time_ns() // 1_000_000)
        trace = {"id": trace_id, "project_name": "receipts-eval", "name": "late", "start_time": now, "end_time": now}
        await fill_opik(settings.opik, [trace | {"metadata": {"response_id": day.orphan, "vertical": "receipts"}}])
        show = ["dead-letters", "list", "--key", day.orphan]
        replay = ["dead-letters", "replay", "--key", day.orphan, "--yes"]
        for command in (show, replay):
            self.console.print(f"[dim]$ rampgate {' '.join(command)}[/]")
            answer = await asyncio.to_thread(rampgate, command, env)
            if command is show:
                for letter in answer["letters"]:
                    self.console.print(f"  {letter['cause']}: {letter['detail']}")
        held = await until_scored(settings.opik, trace_id)
        self.console.print(f"  Opik now holds on {trace_id}: [bold]{held}[/]")
        return {"response_id": day.orphan, "trace_id": trace_id, "scores": held}


async def ask(parts: Parts) -> tuple[CoverageAnswer, Conservation]:
    now, window = parts.clock.now_ms(), int(parts.settings.lookback_seconds)
    covered = await coverage(parts.store, now, window, list(parts.verticals))
    return covered, await conservation(parts.store, now, window, parts.policy.future)


async def counted(parts: Parts, ramp_steps: int) -> Conservation:
    """The conservation once so many ramp steps are counted: a request is counted after its verdict is published."""
    for _ in range(100):
        _, balance = await ask(parts)
        if balance.signals["ramp_step"].consumed >= ramp_steps:
            break
        await asyncio.sleep(0.1)
    return balance


async def send(parts: Parts, day: Day, progress: Any) -> None:
    for start in range(0, len(day.messages), 100):
        part = day.messages[start : start + 100]
        await parts.producer.send([(m.topic, m.key, m.value, ()) for m in part])
        progress(start + len(part))
        await asyncio.sleep(0.05)


async def fill_opik(url: str, traces: list[dict[str, Any]]) -> None:
    async with httpx.AsyncClient(timeout=30) as client:
        for start in range(0, len(traces), 500):
            body = {"traces": traces[start : start + 500]}
            (await client.post(f"{url}/v1/private/traces/batch", json=body)).raise_for_status()


async def until_scored(url: str, trace_id: str) -> dict[str, float]:
    async with httpx.AsyncClient(timeout=10) as client:
        for _ in range(150):
            trace = (await client.get(f"{url}/v1/private/traces/{trace_id}")).json()
            if trace.get("feedback_scores"):
                return {score["name"]: score["value"] for score in trace["feedback_scores"]}
            await asyncio.sleep(0.1)
    raise Unavailable("the replayed thumb never reached Opik")


def environment(settings: Settings) -> dict[str, str]:
    """The environment of a child process: ours, with the settings that differ from their defaults."""
    given = settings.model_dump(mode="json", exclude_unset=True, exclude=set(SECRETS))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAMPGATE_")}
    return kept | {f"RAMPGATE_{name.upper()}": str(value) for name, value in given.items()}


def rampgate(command: list[str], env: dict[str, str]) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "rampgate", *command, "--json"], env=env, capture_output=True, timeout=60, check=False
    )
    if done.returncode:
        raise Failure(f"rampgate {' '.join(command)} ended with {done.returncode}: {done.stderr.decode()[-800:]}")
    return orjson.loads(done.stdout)
