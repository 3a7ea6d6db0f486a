"""Puts the logs back as a test found them: a command run in the test's own process configures them for good.

Where it is left as it is, later tests of the same process find no `caplog` records, no captured events, and a closed
stream; which tests those are depends on how files were shared out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import structlog


@contextmanager
def logs_restored() -> Iterator[None]:
    """Runs the block; what it configured of structlog and of `logging` is undone behind it.

    Loggers are not kept with the configuration of their first use, since nothing could take it from them again."""
    root, configured, configure = logging.getLogger(), structlog.is_configured(), structlog.configure
    handlers, level, before = list(root.handlers), root.level, structlog.get_config()
    levels = {name: made.level for name, made in _loggers()}

    def kept_nowhere(**settings: Any) -> None:
        configure(**{**settings, "cache_logger_on_first_use": False})

    try:
        with mock.patch.object(structlog, "configure", kept_nowhere):
            yield
    finally:
        if configured:
            configure(**before)
        else:
            structlog.reset_defaults()
        if root.handlers != handlers:
            root.handlers[:] = handlers
        if root.level != level:
            root.setLevel(level)
        for name, made in _loggers():
            if made.level != levels.get(name, made.level):
                made.setLevel(levels[name])


def _loggers() -> list[tuple[str, logging.Logger]]:
    known = logging.Logger.manager.loggerDict.items()
    return [(name, made) for name, made in list(known) if isinstance(made, logging.Logger)]
