"""The benchmarks still run: their smallest form, no figure asserted."""

from __future__ import annotations

import os

import pytest

from benchmarks import tables, throughput
from benchmarks.lab import Lab
from benchmarks.options import Options
from rampgate.services.unavailable import ServiceUnavailable


def test_worker_and_bare_loop_do_the_whole_job_side_by_side() -> None:
    options = Options(rounds=1, events=3_000, letters="ae")
    try:
        with Lab() as lab:
            throughput.prepare(lab, options)
            found = throughput.run(lab, options)
    except ServiceUnavailable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    assert {"a", "e"} == found["contenders"].keys()
    assert any("bare aiokafka loop" in line for line in tables.throughput(found))
