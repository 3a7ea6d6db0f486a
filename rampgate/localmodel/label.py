"""How the stand-in says what it is."""

from __future__ import annotations

LABEL = "Rampgate's local model, a stand-in that answers by rule: no language model"
HEADER = "X-Stand-In"
FINGERPRINT = "rampgate-stand-in"


def labelled(model: str) -> str:
    return f"{model} (stand-in)"
