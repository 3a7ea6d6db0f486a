"""`python -m tests.stream.killed_export PAGE WORDS…`: `rampgate WORDS…`, killed when a page, counted from 1 in this
process, is on record and not yet written. The product has no such switch."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

from rampgate.cli import main
from rampgate.export import writing
from rampgate.export.lines import encoded


def run(page: int, words: list[str]) -> None:
    pages = 0

    def killed(lines: Iterable[dict[str, Any]]) -> bytes:
        nonlocal pages
        pages += 1
        if pages == page:
            os.kill(os.getpid(), signal.SIGKILL)
        return encoded(lines)

    with patch.object(writing, "encoded", killed), patch.object(sys, "argv", ["rampgate", *words]):
        main()


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2:])
