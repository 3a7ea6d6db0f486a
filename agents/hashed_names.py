"""Hashes the names of an agent and its version to seven bytes: one for each turn is kept (contracts §3)."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import lru_cache
from hashlib import blake2b
from typing import Final

AGENT_BYTES, VERSION_BYTES = 3, 4
NAMES: Final = AGENT_BYTES + VERSION_BYTES
AGENT_TEXT: Final = AGENT_BYTES * 4 // 3
"""Characters of an agent's hash as text."""
UNNAMED: Final = bytes(NAMES)
"""The names of a trace that lacks its agent or its version."""
REFUSED: Final = b"\xff" * NAMES
"""The names of an agent version beyond the bound on new ones (`agents.newcomers`)."""


@lru_cache(maxsize=4_096)
def names_of(agent: str, version: str) -> bytes:
    """Return the hashes of an agent's and of its version's name, seven bytes; UNNAMED where either is empty."""
    if not agent or not version:
        return UNNAMED
    whole = f"{len(agent)}:{agent}:{version}".encode(errors="surrogatepass")
    return agent_of(agent) + blake2b(whole, digest_size=VERSION_BYTES, person=b"version").digest()


def agent_of(agent: str) -> bytes:
    return blake2b(agent.encode(errors="surrogatepass"), digest_size=AGENT_BYTES, person=b"agent").digest()


def spelled(names: bytes) -> str:
    """Return hashed names as text: the agent's come first, AGENT_TEXT characters."""
    return urlsafe_b64encode(names).decode().rstrip("=")
