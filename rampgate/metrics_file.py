"""Writes the metrics of a command that ends to a file, for a textfile collector (contracts §6)."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import generate_latest

from rampgate.files import replace_file
from streams.metrics import Metrics

_PARTS = ("", "_bucket", "_sum", "_count")


def leave(metrics: Metrics, path: Path, *names: str) -> None:
    """Write the named metrics only: zeros of the others would mix with a worker's figures. Raises Failure."""
    told = metrics.registry.restricted_registry([f"{name}{part}" for name in names for part in _PARTS])
    replace_file(path, generate_latest(told), "--metrics-file")
