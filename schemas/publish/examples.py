"""Gives an example of every published form, as `examples.yaml` has them; a test checks each against its schema and,
where we read it, the codec.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

EXAMPLES: Final[dict[str, list[dict[str, Any]]]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
del EXAMPLES["parts"]
RAMP_STEP: Final = EXAMPLES["ramp-step"][0]
FAILED: Final = EXAMPLES["verdict"][0]
