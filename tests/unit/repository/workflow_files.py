"""Reads workflows and actions of this repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def load(path: Path) -> Any:
    """The file with each scalar as the text it is: `on` is a word here, not a truth value."""
    return yaml.BaseLoader(path.read_text()).get_single_data()
