"""What a gate may spend on its judges: calls, tokens, or both."""

from __future__ import annotations

from evalcore.scoring.calls import CallFailed, Failure

ANSWER_TOKENS = 500
"""Set aside for an answer until the server says what it cost."""


class Spend:
    """None: no limit. Each call is paid for before it is made, so that calls at once can't overspend together."""

    def __init__(self, calls: int | None = None, tokens: int | None = None) -> None:
        self.most_calls, self.most_tokens = calls, tokens
        self.calls = self.tokens = 0

    def reserve(self, tokens: int) -> int:
        """What was set aside. Raises CallFailed where the limit does not allow it."""
        needed = tokens + ANSWER_TOKENS
        if self.most_calls is not None and self.calls >= self.most_calls:
            raise CallFailed(Failure.OVER_LIMIT, f"the gate's limit of {self.most_calls} model calls is spent")
        if self.most_tokens is not None and self.tokens + needed > self.most_tokens:
            raise CallFailed(Failure.OVER_LIMIT, f"the gate's limit of {self.most_tokens} tokens is spent")
        self.calls += 1
        self.tokens += needed
        return needed

    def settle(self, reserved: int, tokens: int | None) -> None:
        """What the call cost; None where nobody knows, then what was set aside stands."""
        if tokens is not None:
            self.tokens += tokens - reserved
