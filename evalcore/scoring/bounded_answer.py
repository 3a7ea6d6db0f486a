"""Reads the answer of a model, a candidate or Opik up to a bound: another's server does not decide what memory we take.

A compressed answer is bounded as it is read and as it is inflated.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass
from typing import Final

import httpx

LONGEST_ANSWER: Final = 4 * 1024 * 1024
"""Bytes of one answer."""
_INFLATES = frozenset({"gzip", "deflate"})
_ZLIB_OR_GZIP = zlib.MAX_WBITS | 32


class TooLong(httpx.TransportError):
    """The answer has more bytes than are read; another try would not mend it."""


@dataclass(frozen=True)
class BoundedAnswer:
    """`headers` finds names in any case."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes


async def bounded(parts: AsyncIterable[bytes], encoding: str, most: int = LONGEST_ANSWER) -> bytes:
    """Returns the content of an answer, whose `parts` come as they were sent, in this Content-Encoding.

    Raises TooLong as soon as there is more, and httpx's DecodingError for an encoding that was not asked for.
    """
    read = bytearray()
    async for part in parts:
        read += part
        if len(read) > most:
            raise TooLong(f"more than {most} bytes")
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return bytes(read)
    if encoding not in _INFLATES:
        raise httpx.DecodingError("the answer has an encoding that was not asked for")
    try:
        content = zlib.decompressobj(_ZLIB_OR_GZIP).decompress(bytes(read), most + 1)
    except zlib.error as error:
        raise httpx.DecodingError("the answer is not what its encoding says") from error
    if len(content) > most:
        raise TooLong(f"more than {most} bytes once inflated")
    return content


def beginning(read: bytes, encoding: str, most: int) -> bytes:
    """Returns the first bytes of a content of which only the first bytes were read; none where they can't be told."""
    if encoding.strip().lower() not in _INFLATES:
        return read[:most]
    try:
        return zlib.decompressobj(_ZLIB_OR_GZIP).decompress(read, most)
    except zlib.error:
        return b""
