"""Reads the file of baselines before a gate, and writes it after one on main (contracts §3)."""

from __future__ import annotations

from pathlib import Path

import orjson

from evalcore.gates.baselines import BaselineFile
from rampgate.files import replace_file
from rampgate.input_files import document


def read_baselines(path: Path, *, may_be_new: bool) -> BaselineFile:
    """The runs on main. `may_be_new`: a missing file, which --record will write, has no runs. Raises BadFile."""
    if may_be_new and not path.exists() and path.absolute().parent.is_dir():
        return BaselineFile()
    return document(path, BaselineFile, "--record on main makes it")[0]


def write_baselines(path: Path, baselines: BaselineFile) -> None:
    """Write the file whole or not at all. Raises Failure."""
    content = orjson.dumps(baselines.document(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    replace_file(path, content, "--baselines")
