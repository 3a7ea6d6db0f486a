"""Declares each option that several commands share, once. A command names those that it takes by their key here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

SPEC_NAME: Final = "agentci_spec.yaml"
"""The name of a spec that no one names (AgentCI Step 3)."""

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document on stdout")]
ConfigsOption = Annotated[
    Path | None, typer.Option("--configs", help="The registry's folder; default: RAMPGATE_CONFIGS, else configs")
]
VerticalOption = Annotated[str | None, typer.Option("--vertical", help="Only this vertical; default: all registered")]
ReportsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--report",
        help="also write FILE.html, .json, .xml (JUnit), or Markdown at the end of any other; `github` writes "
        "annotations to stderr; repeatable",
    ),
]
MetricsOption = Annotated[
    Path | None, typer.Option("--metrics-file", help="Write the metrics to this file, for a textfile collector")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what it would do, and do nothing")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask")]
KafkaOption = Annotated[str | None, typer.Option("--kafka", help="Brokers, comma-separated")]
RedisOption = Annotated[str | None, typer.Option("--redis", help="Redis URL, of a server or of Sentinels")]
OpikOption = Annotated[str | None, typer.Option("--opik", help="Opik URL")]
StandingOption = Annotated[
    Path | None, typer.Option("--standing", help="append the results to this file, JSON Lines, for gate run")
]
StoreOption = Annotated[
    str | None,
    typer.Option(help="what answers and scores are kept in: a file or s3://bucket/prefix; default: .rampgate/store.db"),
]
HttpOption = Annotated[str | None, typer.Option("--http", help="The worker's address:port; default: RAMPGATE_HTTP")]
SHARED: dict[str, tuple[Any, Any]] = {
    "configs": (ConfigsOption, None),
    "kafka": (KafkaOption, None),
    "redis": (RedisOption, None),
    "opik": (OpikOption, None),
    "http": (HttpOption, None),
    "standing": (StandingOption, None),
    "metrics_file": (MetricsOption, None),
    "report": (ReportsOption, None),
    "json": (JsonOption, False),
}
"""Shared options by key, in the order of the help: type and default."""
SETTINGS = {name: name for name in ("configs", "kafka", "redis", "opik", "http")}
"""The settings that shared options name (contracts §7); an option outranks environment and file."""
GONE = {
    "--format": "`--report github` writes annotations to stderr, `--json` the document to stdout",
    "--model": "RAMPGATE_MODEL_URL names the judges' model",
}
"""What replaces options that several commands had."""
