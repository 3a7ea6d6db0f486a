"""Which gates a ramp step fires, and what their verdicts make of the step (PC5 FR-2, §5.5; contracts §3). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalcore.gates.decision import combined
from schemas.judges import Milestone
from schemas.verdicts import Action, Code, GateVerdict, Reason, Word

FULL = 100.0


def milestones(from_percent: float, to_percent: float) -> tuple[Milestone, ...]:
    """`pre_ramp` on the first step above zero, `pre_full` on the step to 100; both, in that order, on a jump from 0 to
    100; none on the steps between and on a step that goes nowhere."""
    out = []
    if from_percent <= 0 < to_percent:
        out.append(Milestone.PRE_RAMP)
    if from_percent < FULL <= to_percent:
        out.append(Milestone.PRE_FULL)
    return tuple(out)


@dataclass(frozen=True)
class Step:
    """A step's verdict. `deciding` is the gate that stands above, None where no gate fired."""

    verdict: Word
    action: Action
    deciding: GateVerdict | None
    halt_at_percent: float | None
    reasons: tuple[Reason, ...]


def of_step(from_percent: float, gates: Sequence[GateVerdict]) -> Step:
    """The worst gate decides; of equals the first. A failed `pre_ramp` halts at 0 %, a failed `pre_full` at the last
    step that passed, where the rollout stands."""
    if not gates:
        message = "no gate fires between the first step and the one to 100 %"
        return Step(Word.PASS, Action.PROCEED, None, None, (Reason(Code.NO_GATE_AT_STEP, message),))
    word = combined([gate.verdict for gate in gates])
    deciding = next(gate for gate in gates if gate.verdict is word)
    if word is not Word.FAIL:
        return Step(word, Action.PROCEED, deciding, None, tuple(deciding.reasons))
    halt = 0.0 if deciding.milestone is Milestone.PRE_RAMP else from_percent
    return Step(word, Action.HALT, deciding, halt, tuple(deciding.reasons))
