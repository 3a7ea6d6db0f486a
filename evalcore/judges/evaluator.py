"""The one interface of all that scores an item: LLM judges, programmatic checks, deterministic judges. Pure.

An evaluator gets an item in its context and returns a score or the reason why there is none. A check that needs no
model returns its `Evaluation` at once; an LLM judge returns the `Prompt` that its model answers, and reads the reply.
The runner (`evalcore.scoring.runner`) asks the model within its limits and keeps what was answered; an evaluator never
calls anything itself, so the same one serves a gate, a live trace and Opik's `evaluate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from evalcore import framing
from evalcore.judges.bindings import Context
from evalcore.registry.judge import Judge


@dataclass(frozen=True)
class Task:
    """One item for one judge.

    `source` is the dataset item or trace that the judge's bindings for `context` read; `weight` is the item's, by
    inverse probability of its sampling; `digest` is the hash of the bytes that `source` was read from, empty where it
    is not known; `judged_tokens` is how much of the item's texts a judge is shown.
    """

    judge: Judge
    item: str
    context: Context
    source: Mapping[str, Any]
    weight: float = 1.0
    digest: bytes = b""
    judged_tokens: int = framing.MOST_TOKENS


@dataclass(frozen=True)
class Evaluation:
    """A score with its reason. `value` is None where the judge does not apply, 1.0 and 0.0 for true and false;
    `dimensions` holds the same for each of the judge's dimensions by its id. `said` holds the values of all answers,
    the first one first, where the judge was asked more than once (the rule's `confirmation`)."""

    value: float | None
    reason: str
    dimensions: Mapping[str, float | None] = field(default_factory=dict)
    said: tuple[float | None, ...] = ()


class NoScore(ValueError):
    """An item has no score; the message says why, as a verdict tells it."""


@dataclass(frozen=True)
class Prompt:
    """The whole content of a call to a model. `rubric` is the system's text, `turn` the JSON object of all that was
    written by others. `schema` is the answer's, where the provider can enforce it; `output` is the text that is judged.
    `nonce` marks the turn's beginning and end; whoever makes the call sets it, and no kept answer depends on it. `read`
    is how many characters of the item were read to make the prompt, and `cut` says that the judge is not shown all.
    `more` are the same question about further windows of an item that is too long to be shown at once."""

    model: str
    temperature: float
    rubric: str
    turn: str
    schema: Mapping[str, Any]
    output: str
    nonce: str = ""
    read: int = 0
    cut: bool = False
    more: tuple[Prompt, ...] = ()

    @property
    def windows(self) -> tuple[Prompt, ...]:
        """Returns all of the questions about the item, of whose answers the worst counts."""
        return (self, *self.more)

    @property
    def messages(self) -> Sequence[Mapping[str, str]]:
        return framing.messages(self.rubric, self.turn, self.nonce)

    @property
    def tokens(self) -> int:
        """The prompt's tokens, roughly: four characters each."""
        return (len(self.rubric) + len(self.turn)) // 4 + 100

    def sealed(self, key: bytes, judge: Judge) -> Prompt:
        """Returns the prompt with the nonce that this key gives it."""
        return replace(self, nonce=framing.nonce(key, judge.version, self.turn))


class Evaluator(Protocol):
    """May be called from any thread, and at any time again with the same result. `needs_model`: without a model it can
    score nothing."""

    @property
    def needs_model(self) -> bool: ...

    def evaluate(self, task: Task) -> Evaluation | Prompt:
        """Return the score, or the prompt whose reply has it.

        Raises NoScore, and Unbound where the item lacks what the judge reads. Any other error leaves the item unscored
        too, as a defect of the evaluator's.
        """
        ...

    def read(self, reply: str, judge: Judge) -> Evaluation:
        """Read the model's reply to the prompt. Raises NoScore: then the model is asked once more."""
        ...
