"""The refusals Opik gives, as exceptions: status and the body of that kind of error.

Opik has two bodies: `{"errors": [...]}` for validation (422), bad ids (400) and taken names (409), and
`{"code", "message"}` for everything else. Clients have to read both.
"""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """A request that is answered with an error. `body` is sent as JSON."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(str(body))
        self.status = status
        self.body = body


def coded(status: int, message: str) -> Refusal:
    return Refusal(status, {"code": status, "message": message})


def bad_request(message: str) -> Refusal:
    return coded(400, message)


def not_found(entity: str, identifier: str) -> Refusal:
    return coded(404, f"{entity} id: {identifier} not found")


def unreadable(detail: str) -> Refusal:
    """The body is no JSON, or a value in it can't be read as its type."""
    return bad_request(f"Unable to process JSON. {detail}")


def invalid(*errors: str) -> Refusal:
    return Refusal(422, {"errors": list(errors)})


def bad_id(entity: str) -> Refusal:
    return Refusal(400, {"errors": [f"{entity} id must be a version 7 UUID"]})


def taken(entity: str) -> Refusal:
    return Refusal(409, {"errors": [f"{entity} already exists"]})
