"""Makes the cluster's client, and the seals on what it says, of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalcore.remediation.sealing import Seals
from rampgate.console import Failure
from rampgate.settings import Settings, revealed

if TYPE_CHECKING:
    from streams.cluster.port import Cluster


def open_cluster(settings: Settings, namespaces: int = 0) -> Cluster:
    """Returns the client of the cluster, which follows so many namespaces at once. Raises Failure where none is
    configured."""
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
