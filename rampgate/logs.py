"""Structured logs on stderr: JSON lines, or text for a person. No secret and no user text goes into one."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog

from rampgate.settings import hide_password

_KEYS = ("key", "token", "secret", "password", "authorization")


def redact(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hide passwords in URLs, and values whose names say that they are secret, at any depth."""
    for name, value in event.items():
        event[name] = cleared(name, value)
    return event


def cleared(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: cleared(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [cleared(name, inner) for inner in value]
    if isinstance(value, str | bytes) and any(part in name.lower() for part in _KEYS):
        return "***"
    return hide_password(value) if isinstance(value, str) else value


def configure_logs(level: str, form: str) -> None:
    """Send structlog's and the standard library's logs through one renderer."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redact,
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer], foreign_pre_chain=shared
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("aiokafka", "faust", "mode", "httpx", "httpcore", "opik", "botocore", "urllib3", "asyncio"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
