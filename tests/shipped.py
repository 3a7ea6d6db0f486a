"""What the shipped registry warns of itself."""

from __future__ import annotations

LACKS = ("sample.adversarial", "sample.candidate")
"""Fields of the manifest without which a rollout's samples have no adversarial and golden items (PC5 §5.5). Only an
installation knows the address at which its versions answer, and which dataset in its Opik is adversarial."""
