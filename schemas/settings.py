"""Reads what several rooms take from settings and flags: the ways to Kafka and to Redis, secrets in files, durations
and moments.

A person types a duration as `90`, `90s`, `15m`, `24h` or `7d`. No message quotes what a secret's file holds.
"""

from __future__ import annotations

import ipaddress
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

ENCRYPTED = frozenset({"https", "rediss", "rediss+sentinel", "unix"})


def in_the_clear(url: str) -> bool:
    """Tells whether what is sent to a URL leaves this machine and can be read on the way."""
    scheme, _, rest = url.partition("://")
    if scheme.lower() in ENCRYPTED:
        return False
    places = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    hosts = {host_of(place) for place in places.split(",")} - {""}
    return not all(map(is_loopback, hosts))


def host_of(place: str) -> str:
    """Returns the host of `host:port`, without the brackets of an IPv6 address."""
    if place.startswith("["):
        return place[1:].partition("]")[0]
    return place if place.count(":") > 1 else place.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Tells whether a host is this machine by its name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@dataclass(frozen=True)
class KafkaAccess:
    brokers: tuple[str, ...]
    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: str | None = None


SENTINEL_SCHEMES: Final = ("redis+sentinel", "rediss+sentinel")
SENTINEL_PORT = 26379
UNUSABLE = (
    "must be redis+sentinel://user:password@host:port,host:port/service/db, the service as the Sentinels name it; "
    "special signs in a user's name or password have to be percent-encoded"
)


@dataclass(frozen=True)
class SentinelUrl:
    """What a URL that names Sentinels says; they say where the master is, which may change while we run.

    `redis+sentinel://user:password@host:port,host:port/service/db`, with TLS `rediss+sentinel://`. User and password
    are the servers'; with `?sentinel_auth=true` the Sentinels ask for the same. `service` is the master's name there.
    Port 26379 and database 0 may be left out.
    """

    sentinels: tuple[tuple[str, int], ...]
    service: str
    database: int = 0
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    sentinel_auth: bool = False


def read_sentinel_url(url: str) -> SentinelUrl | None:
    """Returns what the URL says; None for the URL of one server. Raises ValueError, without a word of the URL, since it
    may hold a password."""
    scheme, _, rest = url.partition("://")
    if scheme not in SENTINEL_SCHEMES:
        return None
    try:
        return _read(scheme, rest)
    except ValueError:
        raise ValueError(UNUSABLE) from None


def _read(scheme: str, rest: str) -> SentinelUrl:
    place, _, query = rest.partition("?")
    authority, _, path = place.partition("/")
    login, _, hosts = authority.rpartition("@")
    user, _, password = login.partition(":")
    service, _, database = path.partition("/")
    options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
    asked = options.pop("sentinel_auth", "false")
    if not service or not (database or "0").isdigit() or "@" in login or "#" in rest:
        raise ValueError
    if options or asked not in ("true", "false"):
        raise ValueError
    return SentinelUrl(
        tuple(_host(one) for one in hosts.split(",")),
        unquote(service),
        int(database or 0),
        unquote(user) or None,
        unquote(password) or None,
        scheme == "rediss+sentinel",
        asked == "true",
    )


def _host(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.path or parts.port == 0:
        raise ValueError
    return parts.hostname, parts.port or SENTINEL_PORT


def read_secret(path: Path) -> str:
    """Returns the file's text without space around it. Raises ValueError, without a word of the text, where there is
    none."""
    try:
        text = path.read_text().strip()
    except OSError as error:
        raise ValueError(f"can't read {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text") from None
    if not text:
        raise ValueError(f"{path} is empty")
    return text


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_FORM = re.compile(r"\s*(\d{1,12})\s*([smhd]?)\s*")


def parse_seconds(text: str) -> int:
    """Reads a duration as whole seconds, at least 1. Raises ValueError with what would be right."""
    match = _FORM.fullmatch(text)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if seconds < 1:
        raise ValueError(f"{text[:32]!r} is no duration: give whole seconds, or a number with s, m, h or d, like 24h")
    return seconds


def parse_moment(text: str, now_ms: int | None = None) -> int:
    """Returns milliseconds since 1970, read from how long ago (`2h`, `7d`), counted from `now_ms` where it is given, or
    an ISO 8601 time (UTC where it names no zone).

    Raises ValueError with what would be right.
    """
    try:
        return round((time.time() if now_ms is None else now_ms / 1000) * 1000 - parse_seconds(text) * 1000)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text[:64]!r} is neither a duration like 2h nor an ISO 8601 time like 2026-03-01T12:00Z"
        ) from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
