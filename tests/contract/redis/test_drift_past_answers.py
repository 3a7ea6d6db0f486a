"""The weekly drift run, as its workflow calls it, beside a Redis that has an answer to each of its questions."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from evalcore.gates.evaluate import scorer_for
from evalcore.judges.evaluator import Task
from evalcore.scoring.assignments import assign, task_of
from rampgate.asking import asked_judges
from rampgate.checks.datasets import items_to_judge
from rampgate.command import read_registry, read_tree
from rampgate.judging import call_limits
from rampgate.settings import Settings
from rampgate.settings_sources import load_settings
from streams.redis.score_cache import RedisScoreCache
from streams.redis.state import RedisStore
from tests.action_program import programs
from tests.fork_server import ran
from tests.root import ROOT
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.rampgate.ci_gate.gate_rig import MANIFEST, environment, local_model

LIMIT = "drift: {kl_threshold: 0.1, baseline_source: provisional_seed, recalibration_due: 2027-02-18}"
JUDGES = ("helpfulness", "brevity", "refusal", "honesty")
OUTPUTS = 120


async def asked_with(settings: Settings, tasks: list[Task]) -> int:
    """Asks them as a gate does, with the shared cache in Redis; how many answers it had."""
    store = RedisStore(settings.redis, settings.redis_prefix)
    try:
        kept = RedisScoreCache(store.redis, store.prefix, 3_600)
        async with scorer_for(cache=kept, limits=call_limits(settings), url=settings.model_url) as scorer:
            assert scorer is not None
            return sum(one.cached for one in await scorer.score("gate", tasks))
    finally:
        await store.close()


async def test_pf9_fr13_the_weekly_run_reaches_the_model_though_all_is_cached(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 13: a hosted model changes silently, and what is kept of its answers does not change with it."""
    root = written(tmp_path, {"evaluation_manifest.yaml": MANIFEST, **{f"rules/{one}.yaml": LIMIT for one in JUDGES}})
    with local_model() as model:
        keeping = {"RAMPGATE_REDIS": redis_url, "RAMPGATE_SEAL_KEY": "the installation's", "DRIFT_SEED": "words"}
        for name, value in {**environment(root, model.url), **keeping}.items():
            monkeypatch.setenv(name, value)
        (tmp_path / ".ci").mkdir()
        shutil.copy(ROOT / ".ci" / "check_drift", tmp_path / ".ci")
        programs(tmp_path)
        captured = ran("check", "drift", "--seed", "words", "--capture", "1", "--json", folder=tmp_path)
        assert captured.returncode == 0, captured.stderr

        settings = load_settings({})
        registry, _ = read_registry(read_tree(settings.configs))
        assert registry is not None
        judges = asked_judges(list(registry.all(None)))
        tasks: list[Task] = [
            task_of(*pair) for pair in assign(judges, items_to_judge(None, registry, "words", OUTPUTS))
        ]
        assert len(tasks) == len(JUDGES) * OUTPUTS
        await asked_with(settings, tasks)
        assert await asked_with(settings, tasks) == len(tasks), "Redis has an answer to each question"

        before = calls(model.url)
        done = subprocess.run(
            [".ci/check_drift"], cwd=tmp_path, env=os.environ, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, done.stderr
        assert calls(model.url) - before == len(tasks)


def calls(url: str) -> int:
    told = httpx.get(f"{url.removesuffix('/v1')}/_requests", timeout=30).json()["answers"]
    return sum(told.values())
