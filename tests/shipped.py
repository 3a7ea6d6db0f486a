"""What the shipped registry warns of itself."""

from __future__ import annotations

LACKS = (
    "sample.adversarial", "sample.candidate", "gates.minimum_sample.pre_ramp", "gates.minimum_sample.pre_full",
)  # fmt: skip
"""Fields of the manifest without which a rollout's samples have no adversarial and golden items (PC5 §5.5). Only an
installation knows the address at which its versions answer, and which dataset in its Opik is adversarial;
and how many traces it has, by which judges could tell smaller falls from chance."""
