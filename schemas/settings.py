"""Connection facts that streams need and the front door reads from its settings."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class KafkaAccess:
    brokers: tuple[str, ...]
    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None
