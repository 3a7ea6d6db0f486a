"""Makes the cluster's client, and the seals on what it says, of the settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalcore.remediation.sealing import Seals
from rampgate.console import Failure
from rampgate.settings import Settings, revealed

FILE: Final = "file:"

if TYPE_CHECKING:
    from streams.cluster.port import Cluster


def open_cluster(settings: Settings, namespaces: int = 0) -> Cluster:
    """Returns the client of the cluster, which follows so many namespaces at once, or the stand-in of a file. Raises
    Failure where none is configured."""
    if settings.cluster_url is not None and settings.cluster_url.startswith(FILE):
        from streams.cluster.twin import Twin, read_objects

        path = Path(settings.cluster_url.removeprefix(FILE))
        try:
            return Twin(read_objects(path.read_text()))
        except (OSError, ValueError) as error:
            raise Failure(f"cluster_url: {path}: {error}") from error
    from streams.cluster.kubernetes import CONNECTIONS, Access, KubernetesCluster

    access = Access(
        settings.cluster_url,
        settings.cluster_token_file,
        settings.cluster_ca_file,
        settings.cluster_timeout_seconds,
        connections=max(CONNECTIONS, namespaces + 3),  # each watch holds one
    )
    try:
        return KubernetesCluster(settings.cluster_kinds, access)
    except ValueError as error:
        raise Failure(f"cluster: {error}") from error


def seals_of(settings: Settings, about: bytes) -> Seals:
    """Returns the seals for a purpose, by the key of now and the one before it."""
    return Seals.of(about, revealed(settings.seal_key), revealed(settings.seal_key_previous))
