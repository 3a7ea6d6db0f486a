"""The address of a candidate, with places for the agent's id and version (contracts §3)."""

from __future__ import annotations

import re
from typing import Annotated, Final
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator, Field, StrictStr

PLACES: Final = ("agent_id", "agent_version")
_PLACE = re.compile(r"\{([^{}]*)\}")
_SOLID = re.compile(r"[!-~]+")


def _endpoint(url: str) -> str:
    """ValueError for what no request could be sent to, or for a place where it would decide more than a name."""
    if not _SOLID.fullmatch(url):
        raise ValueError("is no address: signs other than those of ASCII, and spaces, have to be percent-encoded")
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise ValueError("is no address that begins with http:// or https:// and names a host")
    if "@" in parts.netloc:
        raise ValueError("holds a user's name or password: the key is the setting RAMPGATE_CANDIDATE_KEY")
    if "{" in parts.netloc or "}" in parts.netloc:
        raise ValueError("lets a request choose the host: {agent_id} and {agent_version} may stand in path and query")
    if parts.fragment:
        raise ValueError("has a fragment (#…), which is never sent")
    for name in _PLACE.findall(url):
        if name not in PLACES:
            raise ValueError(f"has a place {{{name}}}: there are {{agent_id}} and {{agent_version}}")
    if re.search("[{}]", _PLACE.sub("", url)):
        raise ValueError("has a brace without its other half")
    return url


Endpoint = Annotated[StrictStr, Field(min_length=1, max_length=2_000), AfterValidator(_endpoint)]


def address(url: str, agent_id: str, agent_version: str) -> str:
    """The address for one version. What a request says is percent-encoded whole, so that it stays one part of the path
    or one value of the query. Raises ValueError for a name that no encoding keeps from being read as a step in the
    path, or that is no text."""
    names = {"agent_id": agent_id, "agent_version": agent_version}
    for name, said in names.items():
        if f"{{{name}}}" in url and said in (".", ".."):
            raise ValueError(f"{name} {said!r} can't be a part of the candidate's address")
    return _PLACE.sub(lambda found: quote(names[found[1]], safe=""), url)
