"""A run of a suite as a file of results, JSON Lines: one sample of a case a line (contracts §5)."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, StrictStr

NOT_APPLICABLE = "N/A"


def _score(value: Any) -> Any:
    """True and false are 1 and 0."""
    if value == NOT_APPLICABLE:
        return NOT_APPLICABLE
    if value is None:
        return None
    if isinstance(value, (bool, int, float)) and isfinite(value):
        return float(value)
    raise ValueError(f'{repr(value)[:80]} is none: a finite number, true, false, "N/A", or null')


def _preferred(value: Any) -> Any:
    known = {"win": 1.0, "tie": 0.5, "loss": 0.0}
    found = known.get(value) if isinstance(value, str) else value
    if not isinstance(found, (int, float)) or isinstance(found, bool) or found not in known.values():
        raise ValueError(f"{repr(value)[:80]} is none: win, tie or loss, or 1, 0.5 or 0")
    return float(found)


def _name(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise ValueError("an id is needed, a text or a whole number")
    return str(value)


Named = Annotated[StrictStr, BeforeValidator(_name)]
ScoreValue = Annotated[float | Literal["N/A"] | None, BeforeValidator(_score)]


class TraceLink(BaseModel):
    """Where the sample's recording is: its content's hash, and an address."""

    model_config = ConfigDict(frozen=True)

    hash: str | None = None
    url: str | None = None


class ResultLine(BaseModel):
    """One sample of one case. A score that is null could not be scored; one that is absent is no part of it. `error`:
    the agent failed, in place of an output. `pairwise`: by score, whether a judge preferred this output to the
    baseline's. Readers ignore fields they don't know."""

    model_config = ConfigDict(frozen=True)

    case_id: Named
    slices: list[Annotated[StrictStr, Field(min_length=1)]] = []
    sample: StrictInt
    scores: dict[str, ScoreValue] = {}
    output: Any = None
    reasons: dict[str, str] | None = None
    trace: TraceLink | None = None
    error: str | None = None
    cost_usd: float | None = Field(default=None, ge=0)
    latency_ms: float | None = Field(default=None, ge=0)
    cluster: Named | None = None
    question_hash: str | None = Field(default=None, pattern=r"^[0-9a-f]{16,64}$")
    """The hash of what was asked and expected: runs whose hashes differ did not answer the same case."""
    versions: dict[str, str] | None = None
    """By score, the version of the judge or check that gave it: scores of two versions are not compared."""
    judged_cut: list[str] | None = None
    """Judges that were shown a part of the answer alone, since it is too long."""
    pairwise: dict[str, Annotated[float, BeforeValidator(_preferred)]] | None = None
