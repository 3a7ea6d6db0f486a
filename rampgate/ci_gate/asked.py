"""Checks what a command that runs a candidate was given: its address, and the registry whose judges score it."""

from __future__ import annotations

from evalcore.registry.registry import Registry
from evalcore.reloading import BrokenRegistry, ReloadingRegistry
from evalcore.yaml.suggestions import UnknownVertical
from rampgate.console import Failure
from rampgate.settings import Settings
from schemas.settings import in_the_clear


def require_address(url: str) -> None:
    """Raises Failure where no candidate can answer there, or the address holds a password."""
    if not url.startswith(("http://", "https://")):
        raise Failure(f"--candidate: {url!r} is no http:// or https:// address")
    if "@" in url.split("/")[2]:
        raise Failure("--candidate: no name or password may stand on a command line: set RAMPGATE_CANDIDATE_KEY")


def require_sealed(url: str, settings: Settings) -> None:
    """Raises Failure where the candidate's key would be sent in the clear to another machine."""
    if settings.candidate_key is not None and not settings.allow_plaintext and in_the_clear(url):
        raise Failure("--candidate: the key would be sent in the clear: use https, or set RAMPGATE_ALLOW_PLAINTEXT")


def registry_of(settings: Settings, vertical: str | None) -> Registry:
    """The registry of the settings. Raises Failure where a file has an error, or the vertical is not registered."""
    try:
        registry = ReloadingRegistry(settings.configs, ttl=None).current()
    except BrokenRegistry as error:
        raise Failure(f"{error}; `rampgate manifest validate` shows all findings") from error
    if "dataset" not in registry.manifest:
        raise Failure(f"{settings.configs}: there is no evaluation manifest")
    if vertical is not None and vertical not in registry.verticals:
        unknown = UnknownVertical(vertical, registry.verticals)
        raise Failure(f"--vertical: {unknown}; there are {', '.join(sorted(registry.verticals))}")
    return registry
