"""Declares the option that the commands of suites share."""

from __future__ import annotations

from typing import Annotated

import typer

StoreOption = Annotated[
    str | None,
    typer.Option(help="what answers and scores are kept in: a file or s3://bucket/prefix; default: .rampgate/store.db"),
]
