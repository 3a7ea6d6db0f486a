"""What the watch over live floors remembers between its looks: open breaches, and what is still owed about them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from evalcore.gates.regression import Breach, Event, Response, Step


@dataclass
class Errand:
    """A response and the steps of it that are not done. Times in ms: when it began, and since when a command about this
    breach would be this breach's own."""

    response: Response
    left: tuple[Step, ...]
    began: int
    since: int


@dataclass
class Regressions:
    """`ended`: when a breach of this key last did, kept for as long as a command about it is looked for."""

    open: dict[str, Breach] = field(default_factory=dict)
    errands: list[Errand] = field(default_factory=list)
    ended: dict[str, int] = field(default_factory=dict)

    def note(self, response: Response, now: int, window: int) -> None:
        """A breach has begun or ended; what was owed about its last event is news no more."""
        key = response.breach.key
        self.errands = [one for one in self.errands if one.response.breach.key != key]
        since = max(self.ended.get(key, 0), now - window)
        self.errands.append(Errand(response, response.steps, now, since))
        self.ended = {name: at for name, at in self.ended.items() if at > now - window}
        if response.over:
            self.open.pop(key, None)
            self.ended[key] = now
        else:
            self.open[key] = response.breach

    def encode(self) -> bytes:
        return orjson.dumps(asdict(self))

    @classmethod
    def decode(cls, raw: bytes | None) -> Regressions:
        held = orjson.loads(raw or b"{}")
        return cls(
            {key: Breach(**breach) for key, breach in held.get("open", {}).items()},
            [_errand(one) for one in held.get("errands", ())],
            held.get("ended", {}),
        )


def _errand(held: dict[str, Any]) -> Errand:
    said = held["response"]
    response = Response(Breach(**said["breach"]), Event(said["event"]), _steps(said["steps"]))
    return Errand(response, _steps(held["left"]), held["began"], held["since"])


def _steps(names: list[str]) -> tuple[Step, ...]:
    return tuple(Step(name) for name in names)
