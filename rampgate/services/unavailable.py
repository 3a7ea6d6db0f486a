"""The one error this package raises when a service can't be had."""

from __future__ import annotations


class ServiceUnavailable(RuntimeError):
    """A service can't be started or went away: which one, why, and what the reader can do about it."""

    def __init__(self, service: str, reason: str, remedy: str) -> None:
        super().__init__(f"{service} is unavailable: {reason}\n  remedy: {remedy}")
        self.service = service
        self.reason = reason
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[ServiceUnavailable], tuple[str, str, str]]:
        return type(self), (self.service, self.reason, self.remedy)
