"""A session's recent turns as one small value, by columns: there is one for every few turns, so each byte counts."""

from __future__ import annotations

import msgspec

from agents.turn import Session

SAID = 8
PREFIX = "resp_"
SPELT = b"\xff"
"""No UTF-8 text begins with this byte."""


class _Columns(msgspec.Struct, array_like=True, gc=False):
    """`started` counts from `base`; `lasted` is end less start; `windows` has one entry where all are the same. An id
    of OpenAI's form (`resp_`, then hexadecimal digits) is kept as SPELT and the bytes its digits spell."""

    base: int
    said: bytes
    started: list[int]
    lasted: list[int]
    windows: list[int]
    ids: list[bytes]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Columns).decode


def encode_session(turns: list[Session]) -> bytes:
    """Inverse of `decode_session`; needs at least one turn, and hashes of SAID bytes."""
    base = turns[0].started
    windows = [turn.window for turn in turns]
    return _encode(
        _Columns(
            base,
            b"".join([turn.said for turn in turns]),
            [turn.started - base for turn in turns],
            [turn.ended - turn.started for turn in turns],
            windows[:1] if len(set(windows)) == 1 else windows,
            [shorten(turn.response_id) for turn in turns],
        )
    )


def decode_session(blob: bytes) -> list[Session]:
    columns = _decode(blob)
    windows = columns.windows * len(columns.ids) if len(columns.windows) == 1 else columns.windows
    out = []
    for at, (offset, lasted, window, short) in enumerate(
        zip(columns.started, columns.lasted, windows, columns.ids, strict=True)
    ):
        started = columns.base + offset
        said = columns.said[SAID * at : SAID * (at + 1)]
        response_id = PREFIX + short[1:].hex() if short[:1] == SPELT else short.decode()
        out.append(Session(said, started, started + lasted, response_id, window))
    return out


def shorten(response_id: str) -> bytes:
    text = response_id.encode()
    digits = response_id.removeprefix(PREFIX)
    if len(digits) == len(response_id) or not digits:
        return text
    try:
        spelt = bytes.fromhex(digits)
    except ValueError:
        return text
    return SPELT + spelt if spelt.hex() == digits else text
