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
    from streams.cluster.twin import Twin


def stand_in(path: Path) -> Twin:
    """Returns a cluster in memory, with the objects of a YAML file. Raises Failure."""
    from rampgate.input_files import BadFile, content, fault
    from streams.cluster.twin import Twin, read_objects

    try:
        return Twin(read_objects(content(path).decode()))
    except UnicodeDecodeError as error:
        raise BadFile(f"{path}: {fault('', 'UTF-8', 'other bytes', 'save the file as UTF-8')}") from error
    except ValueError as error:
        raise BadFile(f"{path}: {error}") from error


def open_cluster(settings: Settings, namespaces: int = 0) -> Cluster:
    """Returns the client of the cluster, which follows so many namespaces at once, or the stand-in of a file. Raises
    Failure where none is configured."""
    if settings.cluster_url is not None and settings.cluster_url.startswith(FILE):
        return stand_in(Path(settings.cluster_url.removeprefix(FILE)))
    from streams.cluster.kubernetes import CONNECTIONS, Access, KubernetesCluster

    for name in ("cluster_token_file", "cluster_ca_file"):
        path: Path | None = getattr(settings, name)
        if path is not None and not path.is_file():
            raise Failure(f"RAMPGATE_{name.upper()}: must be a file, got {path}; name one that this user can see")
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
