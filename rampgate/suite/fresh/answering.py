"""Has one side of a comparison answer anew what another job's run found, into a file for a third one.

The baseline answers as it is in its commit: in its job nothing of a proposal's may run, for who answers can also edit
what was answered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evalcore.scoring.calls import Spend
from rampgate.console import Failure, run
from rampgate.input_files import BadFile
from rampgate.suite.fresh.request import fresh_session, head_of_side, read_again, side_of
from rampgate.suite.runs.answer_files import answers_written
from rampgate.suite.runs.base_folder import NoBase, suite_at
from rampgate.suite.runs.only import Side
from rampgate.suite.runs.run_document import head_of
from rampgate.suite.runs.session import Session
from rampgate.suite.suite_files import Suite


def answered_anew(
    file: Path, session: Session, asked: Path, side: Side, answers: Path, read: Callable[[Path], Suite], spend: Spend
) -> dict[str, Any]:
    """Writes the side's fresh answers and tells what is in them. `file` is the suite's, `asked` says what is to be
    answered. Raises Failure."""
    again = read_again(asked, session.suite, file)
    told = side_of(again, side)
    with TemporaryDirectory(prefix="rampgate-again-") as folder:
        suite = session.suite
        if side is Side.BASELINE:
            try:
                suite = suite_at(file, told.commit, Path(folder, "base"), read)
            except (NoBase, BadFile) as error:
                raise Failure(f"the baseline can't be asked again: {told.commit}: {error}") from error
        if suite.configuration != told.configuration:
            raise Failure(
                f"{asked}: {side}.configuration: it is {told.configuration!r}, and the parts of the {side} make "
                f"{suite.configuration!r}; the file is of another run"
            )
        fresh = fresh_session(session, suite, again, session.suite.cases)
        found = run(partial(fresh.generate, spend))
    head = head_of(fresh.suite, smoke=False) | {"set": again.set, "commit": told.commit}
    head |= {"side": str(side), "after": again.after}
    return head | answers_written(answers, head_of_side(again, side), found, spend)
