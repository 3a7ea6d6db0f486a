"""A worker that could not read what producers may compress says so at its start, and ends."""

from __future__ import annotations

import pytest
from aiokafka import codec

from rampgate.console import Failure
from rampgate.settings import Settings
from rampgate.worker.process import check_codecs, serve_worker


async def test_a_worker_without_a_codec_of_kafkas_ends_at_its_start_and_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codec, "cramjam", None)
    with pytest.raises(Failure, match=r"snappy and lz4 and zstd .*pip install"):
        await serve_worker(Settings())


def test_with_all_of_them_nothing_is_said() -> None:
    check_codecs()
