"""Reads the registry whose judges score a candidate."""

from __future__ import annotations

from evalcore.registry.registry import Registry
from evalcore.reloading import BrokenRegistry, ReloadingRegistry
from evalcore.yaml.suggestions import UnknownVertical
from rampgate.console import Failure
from rampgate.settings import Settings


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
