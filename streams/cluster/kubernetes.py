"""Asks a cluster's API through lightkube, which is imported when a client is made: 17 MB and 0.1 s."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import httpx2
import msgspec
from lightkube import AsyncClient, KubeConfig
from lightkube.config.client_adapter import verify_cluster
from lightkube.config.models import Cluster as Server
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError
from lightkube.generic_resource import GenericNamespacedResource, create_namespaced_resource
from lightkube.types import CascadeType

from evalcore.remediation.objects import Kinds, Object, Why, is_name, is_namespace
from streams.cluster.port import LARGEST_ANSWER, Unread

CONNECTIONS: Final = 8
"""Connections of one process over HTTP/1.1; over TLS a cluster takes all requests on one."""
WATCH_PAUSE: Final = 30.0
"""Seconds from the start of a namespace's watch to that of its next, so that waiting takes two requests a minute."""
LISTED_AT_ONCE: Final = 20
"""Objects of an answer to a list."""
OURS: Final = "rampgate"
"""Who owns the fields that we apply, for the cluster."""
_REFUSED: Final = {401: Why.FORBIDDEN, 403: Why.FORBIDDEN, 404: Why.NOT_FOUND, 408: Why.TIMED_OUT, 504: Why.TIMED_OUT}
"""Why there is no object behind an HTTP status; behind any other the API can't be used now, and may be later."""


@dataclass(frozen=True)
class Access:
    """Where the cluster's API is and how it is asked. `url`: None for that of the pod's service account, else of
    $KUBECONFIG, else of ~/.kube/config, with their keys. `seconds`: for one answer. `watch_pause`: see
    WATCH_PAUSE."""

    url: str | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    seconds: float = 10.0
    watch_pause: float = WATCH_PAUSE
    connections: int = CONNECTIONS


class KubernetesCluster:
    """The port `Cluster` over the Kubernetes API. Raises ValueError where no cluster is configured."""

    def __init__(self, kinds: Kinds, access: Access) -> None:
        self._kinds, self._access = kinds, access
        try:
            config = _config(access).get()
            if config is None:
                raise ValueError("the kubeconfig names no current context")
            config = config._replace(user=config.user or User())
            transport = httpx2.AsyncHTTPTransport(
                verify=verify_cluster(config.cluster, cast(User, config.user), config.abs_file, trust_env=False),
                http2=True,
                limits=httpx2.Limits(max_connections=access.connections),
            )
            self._client = AsyncClient(
                config,
                timeout=httpx2.Timeout(access.seconds),
                field_manager=OURS,
                trust_env=False,
                transport=_Bounded(transport, access.watch_pause),
            )
        except (ConfigError, OSError, LookupError, msgspec.MsgspecError, TypeError) as error:
            why = f"the kubeconfig lacks {error}" if isinstance(error, KeyError) else error
            raise ValueError(
                f"no cluster to ask: {why}; set RAMPGATE_CLUSTER_URL, or KUBECONFIG to a kubeconfig file"
            ) from error

    async def get(self, kind: str, namespace: str, name: str) -> Object | Unread:
        return await self._asked(
            lambda: self._client.get(self._resource(kind), name, namespace=namespace), namespace, name
        )

    async def watch(self, kind: str, namespace: str) -> AsyncGenerator[tuple[str, Object] | Unread, None]:
        if not is_namespace(namespace):
            yield Unread(Why.BAD_NAME)
            return
        while True:
            try:
                watch = self._client.watch(self._resource(kind), namespace=namespace)
                async with aclosing(cast("AsyncGenerator[tuple[str, Object]]", watch)) as changes:
                    async for change in changes:
                        yield change
            except Exception as error:
                yield _unread(error)

    async def labelled(self, kind: str, namespace: str, label: tuple[str, str]) -> Sequence[Object] | Unread:
        async def listed() -> dict[str, Any]:
            found = self._client.list(
                self._resource(kind), namespace=namespace, labels=dict([label]), chunk_size=LISTED_AT_ONCE
            )
            return {"items": [dict(one) async for one in found]}

        answer = await self._asked(listed, namespace)
        return answer if isinstance(answer, Unread) else answer["items"]

    async def apply(self, manifest: Object) -> Object | Unread:
        metadata: Mapping[str, Any] = manifest.get("metadata") or {}
        namespace, name = str(metadata.get("namespace")), str(metadata.get("name"))
        made = self._resource(str(manifest.get("kind")))(**manifest)
        return await self._asked(lambda: self._client.apply(made), namespace, name)

    async def delete(self, kind: str, namespace: str, name: str) -> Unread | None:
        gone = await self._asked(
            lambda: self._client.delete(
                self._resource(kind), name, namespace=namespace, cascade=CascadeType.BACKGROUND
            ),
            namespace, name,
        )  # fmt: skip
        return gone if isinstance(gone, Unread) and gone.why is not Why.NOT_FOUND else None

    async def close(self) -> None:
        await self._client.close()

    def _resource(self, kind: str) -> type[GenericNamespacedResource]:
        return create_namespaced_resource(self._kinds.group, self._kinds.version, kind, _plural(kind))

    async def _asked(self, ask: Callable[[], Awaitable[Any]], namespace: str, *names: str) -> Object | Unread:
        if not (is_namespace(namespace) and all(map(is_name, names))):
            return Unread(Why.BAD_NAME)
        try:
            async with asyncio.timeout(self._access.seconds):
                return dict(await ask() or {})
        except Exception as error:
            return _unread(error)


class _TooLarge(Exception):
    """An answer has more bytes than are read of one."""


class _Bounded(httpx2.AsyncBaseTransport):
    """Reads at most LARGEST_ANSWER bytes of an answer, and passes over a longer line of a watch, so that one huge
    object hides no other. Begins a watch no sooner than a pause after the same one began: an API that ends each at once
    is not asked without rest."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, watch_pause: float) -> None:
        self._inner, self._pause = inner, watch_pause
        self._next: dict[str, float] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        watch = "watch" in request.url.params
        request.headers["Accept-Encoding"] = "identity"  # a small answer might unpack into a large one
        if watch:
            path, now = request.url.path, time.monotonic()
            begins = max(now, self._next.get(path, now))
            self._next[path] = begins + self._pause
            await asyncio.sleep(begins - now)
        response = await self._inner.handle_async_request(request)
        response.headers.setdefault("Content-Type", "")  # lightkube looks at it unasked
        made = _Lines if watch and response.status_code == 200 else _Whole
        response.stream = made(cast("httpx2.AsyncByteStream", response.stream))
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass
class _Whole(httpx2.AsyncByteStream):
    """An answer. Raises _TooLarge."""

    inner: httpx2.AsyncByteStream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self.inner:
            size += len(part)
            if size > LARGEST_ANSWER:
                raise _TooLarge
            yield part

    async def aclose(self) -> None:
        await self.inner.aclose()


class _Lines(_Whole):
    """The lines of a watch, without those that are too long. The client breaks a line at more characters than an API
    does, which an object's text may hold: they are escaped, as JSON allows."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held, dropped = bytearray(), False
        async for part in self.inner:
            *ends, rest = part.split(b"\n")
            for end in ends:
                held += end
                if not dropped and len(held) <= LARGEST_ANSWER:
                    for character in ("\x85", "\u2028", "\u2029"):
                        held = held.replace(character.encode(), b"\\u%04x" % ord(character))
                    yield bytes(held) + b"\n"
                held, dropped = bytearray(), False
            held += rest
            if len(held) > LARGEST_ANSWER:
                held, dropped = bytearray(), True


def _config(access: Access) -> KubeConfig:
    if access.url is None:
        return KubeConfig.from_env()
    ca = str(access.ca_file.absolute()) if access.ca_file is not None else None
    token = str(access.token_file) if access.token_file is not None else None
    return KubeConfig.from_one(cluster=Server(server=access.url, certificate_auth=ca), user=User(token_file=token))


def _plural(kind: str) -> str:
    """Returns how a kind is called in URLs, as the cluster's own tools guess it."""
    word = kind.lower()
    return word + "es" if word.endswith("s") else word[:-1] + "ies" if word.endswith("y") else word + "s"


def _unread(error: Exception) -> Unread:
    """Returns why an error means that there is no object; no text of the API or of an object is in it."""
    if (status := _status(error)) is not None:
        return Unread(_REFUSED.get(status, Why.UNREACHABLE), f"the API answered {status}")
    if isinstance(error, _TooLarge):
        return Unread(Why.TOO_LARGE, f"more than {LARGEST_ANSWER:,} bytes")
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return Unread(Why.TIMED_OUT)
    if isinstance(error, ConfigError | httpx2.TransportError | OSError):
        return Unread(Why.UNREACHABLE, type(error).__name__)
    return Unread(Why.MALFORMED, type(error).__name__)


def _status(error: BaseException | None) -> int | None:
    """Returns the HTTP status behind an error of lightkube, which fails on answers that are no Status object."""
    while error is not None:
        code = getattr(getattr(error, "status", None), "code", None)
        if isinstance(error, httpx2.HTTPStatusError):
            return code or error.response.status_code
        error = error.__context__
    return None
