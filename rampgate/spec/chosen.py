"""Finds the spec that a command is about, and the queries of it that a user names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from typer import Option

from evalcore.trajectory.record import same_agent
from rampgate.console import Failure
from rampgate.options import SPEC_NAME
from rampgate.spec.baselines import Baselines

if TYPE_CHECKING:
    from rampgate.settings import Settings
    from rampgate.spec.loosened import Loosened
    from rampgate.suite.opened import Opened
    from rampgate.suite.spec_files import LoadedSpec
    from rampgate.suite.suite_files import Suite
    from schemas.specs import AgentSpec, GoldenQuery

DEEPEST: Final = 4
"""Folders below the working one in which an agent's spec is looked for."""
AGENT: Final = re.compile(r"""^agent:\s*["']?([^"'#\n]+)""", re.MULTILINE)
PASSED_OVER: Final = ("node_modules", "venv", "__pycache__")

ConfigOption = Annotated[
    Path | None, Option("--config", help=f"the spec; default: {SPEC_NAME} here, or the --agent's in a folder below")
]
AgentOption = Annotated[str | None, Option("--agent", help="the agent whose spec is meant")]
QueryOption = Annotated[list[str] | None, Option("--query", help="only this query, by its id or text; repeatable")]


def spec_file(config: Path | None, agent: str | None) -> Path:
    """Returns the spec's file: the one named, else that of this folder, else the only one below it that is the agent's.
    Raises Failure."""
    if config is not None:
        return config
    here = Path(SPEC_NAME)
    if agent is None or (here.is_file() and same_agent(_agent_of(here), agent)):
        return here
    found = [path for path in _below(Path()) if same_agent(_agent_of(path), agent)]
    if len(found) != 1:
        many = f"{len(found)} are: {', '.join(map(str, found))}" if found else "none is"
        raise Failure(
            f"--agent {agent}: must be the agent of one {SPEC_NAME} in this folder or below, {many}; give --config"
        )
    return found[0]


def loaded_spec(
    config: Path | None, agent: str | None, share: float | None = None, proposed: Path | None = None
) -> LoadedSpec:
    """Returns the spec; `share` is that of the queries that several models judge, `proposed` the folder that the
    candidate is taken from. Raises Failure, also where the spec is another agent's."""
    from rampgate.suite.spec_files import open_spec

    path = spec_file(config, agent)
    loaded = open_spec(path, share, proposed)
    if agent is not None and not same_agent(loaded.spec.agent, agent):
        raise Failure(f"--agent {agent}: must be {loaded.spec.agent!r}, the agent of {path}")
    return loaded


def spec_at(path: Path, ref: str) -> AgentSpec:
    """Returns the spec as a commit has it, with what it includes there. Raises Failure."""
    from tempfile import TemporaryDirectory

    from rampgate.registry.rule_history import NoHistory
    from rampgate.suite.runs.base_folder import unpacked
    from rampgate.suite.spec_files import open_spec

    with TemporaryDirectory(prefix="rampgate-") as made:
        try:
            return open_spec(unpacked(path, ref, Path(made))[0]).spec
        except NoHistory as error:
            raise Failure(f"--base {ref}: {error}") from error


def less_asserted(loaded: LoadedSpec, base: str | None) -> tuple[list[Loosened], LoadedSpec]:
    """Returns what is asserted less of than in `base`, a commit, or than in the target's spec by what is proposed; with
    the spec that asserts it. Raises Failure."""
    from rampgate.spec.loosened import loosened
    from rampgate.suite.spec_files import open_spec

    after = open_spec(loaded.theirs) if loaded.theirs is not None else loaded
    if base is not None:
        return loosened(spec_at(loaded.path, base), after.spec), after
    return loosened(open_spec(loaded.path).spec, after.spec) if after is not loaded else [], after


def opened_spec(loaded: LoadedSpec, settings: Settings, store: str | None) -> Opened:
    """Returns the suite that a spec is, with its store. Raises Failure."""
    from rampgate.store.place import place_of
    from rampgate.store.sqlite_file import STORE
    from rampgate.suite.opened import FOLDER, Opened
    from rampgate.suite.scoring import Rubric

    home = loaded.path.parent / FOLDER
    rubric = Rubric([], loaded.suite.checks, {})
    return Opened(settings, loaded.suite, [], rubric, [], home, place_of(store, home / STORE, settings))


def baselines_of(loaded: LoadedSpec) -> Baselines:
    """Returns the baselines beside a spec."""
    return Baselines(loaded.path.parent / loaded.spec.baseline_dir, loaded.spec.agent)


def chosen(spec: AgentSpec, queries: Sequence[str], tags: Sequence[str]) -> list[GoldenQuery]:
    """Returns the queries with one of the tags, and of these the ones named by id or text; all without both. Raises
    Failure where there is none, or one of the tags and names is no query's: what is not asked must not pass."""
    named, tags = tags, [tag.strip() for told in tags for tag in told.split(",") if tag.strip()]
    if named and not tags:
        raise Failure("--tags: names no tag; leave it out to select all queries")
    known = {tag for one in spec.queries for tag in one.tags}
    for tag in tags:
        if tag not in known:
            raise Failure(f"--tags {tag}: no query has it; those there are: {', '.join(sorted(known)) or 'none'}")
    names = {name for one in spec.queries for name in (one.id, one.query)}
    for name in queries:
        if name not in names:
            raise Failure(f"--query {name[:200]}: no query of the spec has this id or text")
    found = [
        one
        for one in spec.queries
        if (not tags or {*tags} & {*one.tags}) and (not queries or {one.id, one.query} & {*queries})
    ]
    if not found:
        raise Failure("no query is selected: none has one of the --tags and is one of --query")
    return found


def asking(suite: Suite, queries: Sequence[GoldenQuery], repeats: int, workers: int | None) -> Suite:
    """Returns the suite of these queries alone, each asked so often, and so many at once."""
    some = suite.asking([str(one.id) for one in queries], repeats)
    if workers is None:
        return some
    candidate = some.file.candidate.model_copy(update={"at_once": workers})
    return replace(some, file=some.file.model_copy(update={"candidate": candidate}))


def _below(folder: Path) -> Iterator[Path]:
    for at, folders, names in os.walk(folder):
        deep = len(Path(at).parts)
        folders[:] = sorted(
            name for name in folders if deep < DEEPEST and name[0] not in "._" and name not in PASSED_OVER
        )
        if SPEC_NAME in names:
            yield Path(at, SPEC_NAME)


def _agent_of(path: Path) -> str:
    """The agent that a spec names, empty where that can't be read: then it is not the one looked for."""
    try:
        found = AGENT.search(path.read_text())
    except (OSError, UnicodeDecodeError):
        return ""
    return found[1] if found is not None else ""
