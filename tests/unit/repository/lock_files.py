"""The lock files, and what they pin."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from tests.root import ROOT

LOCKS = ("requirements.lock", "requirements-local.lock", "requirements-dev.lock", "requirements-build.lock")


ENTRY = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)(.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)*)", re.M)


def entries(name: str) -> dict[str, set[str]]:
    """Package to its versions; there are several where markers tell platforms apart."""
    found: dict[str, set[str]] = {}
    for match in ENTRY.finditer((ROOT / name).read_text()):
        assert "--hash=" in match[3], f"{name}: {match[1]} has no hash"
        found.setdefault(canonicalize_name(match[1]), set()).add(match[2])
    return found
