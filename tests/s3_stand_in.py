"""A stand-in for S3: one bucket in memory, over HTTP, with what `rampgate.store.s3_objects` needs of it alone.

Objects are put, also on condition (`If-None-Match: *`, `If-Match`), read and deleted, and listed in pages. A condition
is looked at and the object written in one step, as S3 does and moto does not: of two writers at once exactly one must
win. Requests have to be signed, but signatures are not verified. The real client, boto3, speaks to it. It can be told
to fail: with a status, or by losing answers.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "suites"
Answer = tuple[int, dict[str, str], bytes]


class StandIn:
    """`objects` may be looked at and changed; `calls` counts requests by method. `page`: keys on a page of a list."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.calls: Counter[str] = Counter()
        self.page = 1_000
        self.status: int | None = None
        """What every request is answered with, None where it is answered as S3 does."""
        self.denied: set[str] = set()
        """Methods that are refused of objects, as to a role that lacks a right."""
        self.mute = 0
        """So many answers are lost: the connection is closed once the request is carried out."""
        self.url = ""
        self._lock = Lock()

    def environment(self) -> dict[str, str]:
        """What makes boto3 talk to it."""
        return {
            "AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up",
            "AWS_DEFAULT_REGION": "eu-central-1", "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """Status, headers and body of one request."""
        parts = urlsplit(target)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        with self._lock:
            self.calls[method] += 1
            if self.status is not None:
                return _failed(self.status, "SlowDown" if self.status == 503 else "AccessDenied")
            if "authorization" not in headers:
                return _failed(403, "AccessDenied")
            if bucket != BUCKET:
                return _failed(404, "NoSuchBucket")
            if method == "GET" and not key:
                return 200, {}, self._listed(parse_qs(parts.query))
            return self._object(method, key, headers, body)

    def _object(self, method: str, key: str, headers: dict[str, str], body: bytes) -> Answer:
        held = self.objects.get(key)
        if method in self.denied:
            return _failed(403, "AccessDenied")
        if method == "PUT":
            if headers.get("if-none-match") == "*" and held is not None:
                return _failed(412, "PreconditionFailed")
            if "if-match" in headers and held is None:
                return _failed(404, "NoSuchKey")
            if held is not None and headers.get("if-match", _tag(held)) != _tag(held):
                return _failed(412, "PreconditionFailed")
            self.objects[key] = body
            return 200, {"ETag": _tag(body)}, b""
        if method == "DELETE":
            self.objects.pop(key, None)
            return 204, {}, b""
        if held is None:
            return _failed(404, "NoSuchKey")
        return 200, {"ETag": _tag(held)}, held

    def _listed(self, query: dict[str, list[str]]) -> bytes:
        prefix, after = query.get("prefix", [""])[0], query.get("continuation-token", [""])[0]
        many = min(self.page, int(query.get("max-keys", ["1000"])[0]))
        keys = sorted((key for key in self.objects if key.startswith(prefix) and key > after), key=str.encode)
        page = keys[:many]
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if len(keys) > many else ""
        named = "".join(f"<Contents><Key>{escape(quote(key))}</Key></Contents>" for key in page)
        return (
            '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<IsTruncated>{str(bool(more)).lower()}</IsTruncated><EncodingType>url</EncodingType>{more}{named}"
            "</ListBucketResult>"
        ).encode()


def _tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def _failed(status: int, code: str) -> Answer:
    return status, {}, f"<Error><Code>{code}</Code><Message>made up</Message></Error>".encode()


@contextmanager
def s3_stand_in() -> Iterator[StandIn]:
    """Serves one until the block ends."""
    made = StandIn()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            if len(body) < length:  # its sender was killed: S3 keeps no half of an object
                self.close_connection = True
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, told, content = made.answer(self.command, self.path, headers, body)
            if made.mute:
                made.mute -= 1
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in told.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_DELETE = _serve

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
