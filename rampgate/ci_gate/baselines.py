"""Reads the file of baselines before a gate, and writes it after one on main (contracts §3)."""

from __future__ import annotations

from pathlib import Path

import orjson
from pydantic import ValidationError

from evalcore.gates.baselines import BaselineFile
from rampgate.ci_gate.inputs import BadFile
from rampgate.files import replace_file


def read_baselines(path: Path, *, may_be_new: bool) -> BaselineFile:
    """The runs on main. `may_be_new`: a missing file, which --record will write, has no runs. Raises BadFile."""
    try:
        data = orjson.loads(path.read_bytes())
        return BaselineFile.model_validate(data)
    except FileNotFoundError as error:
        if may_be_new and path.absolute().parent.is_dir():
            return BaselineFile()
        raise BadFile(f"--baselines {path}: no such file; --record on main makes it") from error
    except OSError as error:
        raise BadFile(f"--baselines {path}: can't be read: {error.strerror or error}") from error
    except orjson.JSONDecodeError as error:
        raise BadFile(f"--baselines {path}: not JSON: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "file"
        raise BadFile(f"--baselines {path}: {place}: {first['msg']}") from error


def write_baselines(path: Path, baselines: BaselineFile) -> None:
    """Write the file whole or not at all. Raises Failure."""
    content = orjson.dumps(baselines.document(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    replace_file(path, content, "--baselines")
