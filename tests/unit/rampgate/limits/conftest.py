"""Every test of a check runs in an empty folder, so that nothing is written beside this repository's own files."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def in_an_empty_folder(alone: None) -> None: ...
