"""Writes a report where `--report` says: to files, in the format that each one's ending names, and as annotations."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rampgate.console import Failure, json_text
from rampgate.files import append_file, replace_file, writable
from rampgate.report.github import workflow_commands
from rampgate.report.html import html
from rampgate.report.junit import junit
from rampgate.report.markdown import markdown
from rampgate.report.model import Report

PAGES = {".html", ".htm"}
GITHUB = Path("github")
"""In place of a file: annotations on stderr."""


def check_paths(paths: Sequence[Path]) -> None:
    """Raises Failure before anything costs."""
    for path in paths:
        if path != GITHUB and not writable(path):
            raise Failure(f"--report {path}: name a regular file in a folder that exists")


def write_all(paths: Sequence[Path], report: Report, document: Any) -> None:
    """Write the report to each file: `.html` a page, `.xml` JUnit, `.json` the `document` of `--json`. A file of any
    other name gets Markdown at its end, as a job's summary does; GITHUB is no file. Raises Failure."""
    for path in paths:
        kind = path.suffix.lower()
        if path == GITHUB:
            sys.stderr.write("".join(f"{line}\n" for line in workflow_commands(report)))
        elif kind in PAGES:
            replace_file(path, html(report), "--report")
        elif kind == ".xml":
            replace_file(path, junit(report), "--report")
        elif kind == ".json":
            replace_file(path, json_text(document), "--report")
        else:
            append_file(path, markdown(report).encode(), "--report")
