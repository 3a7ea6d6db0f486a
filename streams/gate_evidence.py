"""What a gate asks beside its judges: earlier verdicts, the join's coverage, and who may publish."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis.exceptions import RedisError

from agents.counting import BOTH
from agents.ports import Clock, Store, Unavailable
from evalcore.gates.limits import ROLLING
from evalcore.gates.requests import Asked
from schemas.judges import Milestone
from streams.coverage import of_one, read_counts
from streams.verdict_log import Known, VerdictLog

LEASE_MS = 60_000
"""Twice as long as a producer may take."""
TAKE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""


class VerdictHistory:
    """The gates' `History`, out of the verdicts' topic. The rolling baseline of a judge is of the last gates of its
    milestone that passed, under the same judge version: what passed is what main has."""

    def __init__(self, verdicts: VerdictLog) -> None:
        self._verdicts = verdicts

    async def baseline(self, judge: str, version: str, dataset_version: str, milestone: Milestone) -> Sequence[float]:
        found: list[float] = []
        for known in self._verdicts.latest():
            for gate in known.value.get("gates", ()):
                score = gate.get("per_judge_scores", {}).get(judge)
                if gate.get("milestone") != milestone or gate.get("verdict") == "fail" or score is None:
                    continue
                if score.get("judge_version") == version and score.get("score") is not None:
                    found.append(float(score["score"]))
            if len(found) >= ROLLING:
                break
        return found[:ROLLING][::-1]

    async def suspended(self, judge: str) -> str:
        return ""

    async def previous(self, asked: Asked) -> str | None:
        step = asked.step
        wanted = {
            "experiment_id": step.experiment_id,
            "agent_id": step.agent_id,
            "agent_version": step.agent_version,
            "from_percent": step.from_percent,
            "to_percent": step.to_percent,
        }
        return next((k.verdict_id for k in self._verdicts.latest() if _says(k, wanted, step.request_id)), None)


def _says(known: Known, wanted: dict[str, Any], request_id: str) -> bool:
    value = known.value
    return value.get("request_id") != request_id and all(value.get(name) == word for name, word in wanted.items())


class WindowCoverage:
    """The gates' `JoinCoverage`."""

    def __init__(self, store: Store, clock: Clock, registered: Sequence[str]) -> None:
        self._store, self._clock, self._registered = store, clock, registered

    async def rate(self, vertical: str | None, window_seconds: int) -> float | None:
        counts = await read_counts(self._store, self._clock.now_ms(), window_seconds)
        if vertical is not None:
            return of_one(counts, vertical, self._registered, window_seconds).rate
        total = sum(counts.values())
        both = sum(turns for (_, kind), turns in counts.items() if kind == BOTH)
        return both / total if total else None


class PublishLeases:
    """In Redis. A worker that dies leaves its lease to expire, and the next one then finds whether it published."""

    def __init__(self, redis: Any, prefix: str) -> None:
        self._prefix = prefix
        self._take = redis.register_script(TAKE)

    async def take(self, request_id: str, owner: str) -> bool:
        try:
            return bool(await self._take(keys=[f"{self._prefix}g:{request_id}"], args=[owner, LEASE_MS]))
        except (RedisError, OSError, TimeoutError) as error:
            raise Unavailable(f"Redis: {error}") from error
