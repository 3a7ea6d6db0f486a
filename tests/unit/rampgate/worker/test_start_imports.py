"""A process of ours imports, at its start, what it needs to start: the rest costs each start seconds. A worker that
could not read what producers may compress says so at its start, and ends."""

from __future__ import annotations

import subprocess
import sys

import pytest
from aiokafka import codec

from rampgate.console import Failure
from rampgate.settings import Settings
from rampgate.worker.process import check_codecs, serve_worker
from tests.root import ROOT

HEAVY = ("boto3", "botocore", "confluent_kafka", "litellm", "numpy", "openai", "opik", "scipy", "sentry_sdk")
"""Each takes a tenth of a second and more; who needs one imports it then."""


@pytest.mark.parametrize("module", ["rampgate.worker.process", "rampgate.worker.feed", "rampgate.worker.sweep"])
def test_a_start_imports_nothing_heavy_that_it_does_not_need(module: str) -> None:
    program = f"import sys, {module}; print(*sorted(set({HEAVY!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == []


def test_the_gateways_to_opik_import_nothing_of_its_sdk() -> None:
    program = (
        "import sys, streams.opik.client, streams.opik.traces, streams.opik.datasets, streams.opik.rules;"
        "print('opik' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == ["False"]


async def test_a_worker_without_a_codec_of_kafkas_ends_at_its_start_and_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codec, "cramjam", None)
    with pytest.raises(Failure, match=r"snappy and lz4 and zstd .*pip install"):
        await serve_worker(Settings())


def test_with_all_of_them_nothing_is_said() -> None:
    check_codecs()
