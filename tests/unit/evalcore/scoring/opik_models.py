"""A model as Opik's metrics call one: by chat completion alone."""

from __future__ import annotations

from typing import Any

from opik.evaluation.models import OpikBaseModel


class ChatOnly(OpikBaseModel):
    """Fails a test that asks otherwise; `generate_chat_completion` is the test's own."""

    def generate_string(self, *_: Any, **__: Any) -> str:
        raise AssertionError("not this way")

    def generate_provider_response(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("not this way")
