"""Runs `rampgate suite comment`: tells a pull request what a run of a suite came to, in one comment."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from agents.ports import Unauthorized, Unavailable
from evalcore.scoring.bounded_answer import BoundedClient
from rampgate.ci_gate.github import REPOSITORY, SECONDS, GitHub
from rampgate.console import Failure, print_json, run
from rampgate.settings import Settings, revealed
from rampgate.settings_sources import load_settings
from rampgate.suite.pull_request.comments import Comments, MayNotWrite
from rampgate.suite.pull_request.documents import read_document
from rampgate.suite.pull_request.marks import Mark
from rampgate.suite.pull_request.text import comment_text
from rampgate.suite.pull_request.upkeep import Kept, keep_comment

COMMIT: Final = re.compile(r"[0-9a-f]{40,64}")
MADE: Final = {"made": "commented", "edited": "edited the comment", "left": "left the comment as it is"}


@dataclass(frozen=True)
class Options:
    """The options of the command, under their own names."""

    document: Path
    repository: str
    pull_request: str
    run: int
    attempt: int
    as_json: bool


def comment_on(options: Options) -> int:
    """Comment, say what was done, and return 0, also where the token may not comment. Raises Failure."""
    number = options.pull_request.removeprefix("#")
    if not number.isascii() or not number.isdigit() or len(number) > 9:
        raise Failure("--pull-request: name it by its number: --pull-request 12")
    if not REPOSITORY.fullmatch(options.repository):
        raise Failure("--repository: name it as GitHub does: owner/name")
    about, told = read_document(options.document)
    if not COMMIT.fullmatch(about.commit):
        raise Failure(f"{options.document}: commit: it names none; `suite run --commit SHA` says which was judged")
    mark = Mark(about.suite, about.commit, options.run, options.attempt)
    try:
        body = comment_text(told, mark)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise Failure(f"{options.document}: is no whole document of `suite run --json`: {error!r}") from error
    settings = load_settings()
    place = f"{options.repository}#{number}"
    if not revealed(settings.github_token):
        return _tell(options, None, f"no comment on {place}: there is no token; the job's summary has the report")
    try:
        kept = run(partial(_commented, settings, options.repository, int(number), mark, body))
    except MayNotWrite as error:
        why = f"{error}, as for a pull request from a fork"
        return _tell(options, None, f"no comment on {place}: {why}; the job's summary has the report")
    except (Unavailable, Unauthorized) as error:
        raise Failure(f"no comment on {place}: {error}") from error
    why = f": {kept.why}" if kept.why else ""
    return _tell(options, kept, f"{MADE[kept.done]} on {place}{why}")


async def _commented(settings: Settings, repository: str, number: int, mark: Mark, body: str) -> Kept:
    async with BoundedClient(1, SECONDS) as client:
        comments = Comments(GitHub(client, settings.github_url, revealed(settings.github_token)))
        return await keep_comment(comments, repository, number, mark, body)


def _tell(options: Options, kept: Kept | None, words: str) -> int:
    if options.as_json:
        done: dict[str, Any] = {"done": "none", "url": None} if kept is None else {"done": kept.done, "url": kept.url}
        print_json({**done, "why": words})
    else:
        sys.stdout.write(f"{words}\n")
    return 0
