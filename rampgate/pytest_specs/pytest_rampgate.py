"""Runs the queries of an agent's spec as tests of pytest, by Rampgate's command line (AgentCI Step 6).

It imports nothing of Rampgate, whose top-level names clash with those of public packages: the program is in an
environment of its own. In a session each command runs once, whatever the number of tests and of xdist's workers.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

COMMAND: Final = "PYTEST_RAMPGATE_COMMAND"
"""The variable that names the program, before the option `rampgate_command`."""
LONGEST: Final = 4_000
"""Characters of what the program wrote to stderr, in an error."""


class SpecError(Exception):
    """Says that a spec can't be read, or whether its queries pass can't be found out."""


class SpecWarning(UserWarning):
    """Says that a path or a cost is beyond its limits, or that a spec asks for less than it seems to."""


class LostQuery(SpecWarning):
    """Says that a test of a spec's queries asked none of them."""


@dataclass(frozen=True)
class Query:
    """A query of a spec, with the line that it begins on."""

    id: str
    query: str
    tags: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Spec:
    """A valid spec, its queries in their order. `warnings` are what `rampgate spec validate` warns of."""

    path: Path
    agent: str
    queries: tuple[Query, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Layer:
    """What a layer found: `status` is pass, warn, fail, skip (nothing is asserted) or infra (undecided)."""

    status: str
    messages: list[str]
    details: Mapping[str, Any]


@dataclass(frozen=True)
class Reason:
    """Why a query fails, warns or is undecided, with the file and the line of the assertion."""

    level: str
    words: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.words}"


@dataclass(frozen=True)
class Result:
    """What a query's three layers found. `status` is pass, warn, fail or infra; `infra` says why it is undecided, and
    is empty where it is not."""

    id: str
    query: str
    status: str
    correctness: Layer
    path: Layer
    cost: Layer
    infra: str
    reasons: tuple[Reason, ...]

    @property
    def hard_fail(self) -> bool:
        """Says whether the query blocks. Raises SpecError where that is undecided: no answer is no pass."""
        if self.infra:
            raise SpecError(self.text)
        return self.status == "fail"

    @property
    def has_warnings(self) -> bool:
        """Says whether a layer warns."""
        return any(layer.status == "warn" for layer in (self.correctness, self.path, self.cost))

    @property
    def text(self) -> str:
        """Everything that is not right, a line each."""
        lines = [str(reason) for reason in self.reasons]
        return "\n".join(lines) or f"{self.id}: {'; '.join(self.correctness.messages) or self.infra or self.status}"


@dataclass
class _Session:
    """A session of pytest. `folder` is shared by xdist's workers, and no other session has it; `item` is the test that
    runs, and `asked` says whether it asked a query."""

    folder: Path
    command: str
    item: pytest.Item | None = None
    asked: bool = False


_session: _Session | None = None


def load_spec(path: str | os.PathLike[str]) -> Spec:
    """Returns the spec of a file. Raises SpecError with every finding where it is not valid."""
    file = Path(path).absolute()
    document = _document(file, ["spec", "validate", str(file), "--json"])
    try:
        if not document["valid"]:
            raise SpecError("\n".join(map(_finding, document["errors"])))
        queries = tuple(
            Query(one["id"], one["query"], tuple(one["tags"]), one["line"]) for one in document["golden_queries"]
        )
        return Spec(file, document["agent"], queries, tuple(map(_finding, document["warnings"])))
    except (KeyError, TypeError) as error:
        raise SpecError(f"{file}: `rampgate spec validate` answered without {error}; update rampgate") from error


def run_spec(spec: Spec, query_indices: Sequence[int] | None = None) -> list[Result]:
    """Returns the results of the queries at these indices, of all without them.

    In a test that has its one index as a parameter, one run asks the queries of all its parameters that are selected.
    Raises IndexError for an index that the spec has no query at, and SpecError where there is no result.
    """
    indices = list(range(len(spec.queries)) if query_indices is None else query_indices)
    if not indices:
        raise SpecError(f"{spec.path}: no query is selected")
    for number in indices:
        if not 0 <= number < len(spec.queries):
            raise IndexError(f"{spec.path}: has no query {number}; it has {len(spec.queries)}")
    together = {*indices, *_parameters(indices)}
    found = _results(spec, [one.id for number, one in enumerate(spec.queries) if number in together])
    if _session is not None:
        _session.asked = True
    return [_result(spec, found, spec.queries[number].id) for number in indices]


def _parameters(indices: list[int]) -> set[int]:
    """The indices that the selected tests of the function that runs have as a parameter."""
    item = _session.item if _session is not None else None
    given = _given(item)
    name = next((name for name, value in given.items() if isinstance(value, int) and [value] == indices), None)
    if item is None or name is None:
        return set()
    function = item.nodeid.partition("[")[0]
    same = (one for one in item.session.items if one.nodeid.partition("[")[0] == function)
    return {value for one in same if isinstance(value := _given(one).get(name), int)}


def _given(item: pytest.Item | None) -> Mapping[str, Any]:
    return getattr(getattr(item, "callspec", None), "params", {})


def _results(spec: Spec, ids: Sequence[str]) -> dict[str, Result]:
    """What a run of these queries found, by their ids."""
    some = [] if len(ids) == len(spec.queries) else [f"--query={one}" for one in ids]
    try:
        document = _document(spec.path, ["spec", "test", "--config", str(spec.path), "--format", "json", *some])
        return {one["id"]: _read_result(one) for one in document["results"]}
    except (KeyError, TypeError) as error:
        raise SpecError(f"{spec.path}: `rampgate spec test` answered without {error}; update rampgate") from error


def _result(spec: Spec, found: Mapping[str, Result], name: str) -> Result:
    if name not in found:
        raise SpecError(f"{spec.path}: the run has no result of the query {name}")
    return found[name]


def _read_result(told: Mapping[str, Any]) -> Result:
    layers = {
        name: Layer(told[name]["status"], told[name]["messages"], told[name]["details"])
        for name in ("correctness", "path", "cost")
    }
    undecided = [words for one in layers.values() if one.status == "infra" for words in one.messages]
    decided = told["status"] in ("pass", "warn", "fail")
    infra = "" if decided else told.get("infra") or "; ".join(undecided) or f"status {told['status']}"
    reasons = tuple(Reason(one["level"], one["words"], one["file"], one["line"]) for one in told["reasons"])
    return Result(told["id"], told["query"], told["status"], **layers, infra=infra, reasons=reasons)


def _finding(told: Mapping[str, Any]) -> str:
    return f"{told['file']}:{told['line']}: {told['field']}: {told['message']}; {told['fix']}"


def _document(spec: Path, arguments: list[str]) -> dict[str, Any]:
    """The JSON document that the program answers with, in a session that of its first call. Raises SpecError."""
    if _session is None:
        done = _call(_program("rampgate"), arguments)
    else:
        done = _once(_session.folder, _program(_session.command), spec, arguments)
    try:
        document = json.loads(done["out"])
    except ValueError:
        document = None
    if not isinstance(document, dict) or done["code"] not in (0, 1, 2) or _disagrees(document, done["code"]):
        said = done["err"].strip()[-LONGEST:] or "it says nothing"
        raise SpecError(f"`rampgate {shlex.join(arguments[:2])}` ended with exit code {done['code']}: {said}")
    return document


def _disagrees(document: Mapping[str, Any], code: int) -> bool:
    """Says whether all results are well and the program failed nevertheless."""
    return code != 0 and "results" in document and all(one["status"] in ("pass", "warn") for one in document["results"])


def _program(default: str) -> list[str]:
    return shlex.split(os.environ.get(COMMAND) or default)


def _once(folder: Path, program: list[str], spec: Path, arguments: list[str]) -> Any:
    """What one call came to. Its file is there once it is whole, and the lock ends with the processes that hold it: the
    worker's and the program's. So a worker that dies lets another one call, and never two at once."""
    content = spec.read_bytes() if spec.is_file() else b""
    key = hashlib.sha256(json.dumps([program, arguments]).encode() + b"\0" + content).hexdigest()
    folder.mkdir(mode=0o700, exist_ok=True, parents=True)
    kept, part = folder / f"{key}.json", folder / f"{key}.part"
    with (folder / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            part.write_text(json.dumps(_call(program, arguments, lock.fileno())))
            part.replace(kept)
    return json.loads(kept.read_text())


def _call(program: list[str], arguments: list[str], *inherited: int) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [*program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace",
            pass_fds=inherited, check=False,
        )  # fmt: skip
    except OSError as error:
        fix = f"install rampgate in an environment of its own, and name its program in rampgate_command or {COMMAND}"
        raise SpecError(f"{program[0]}: {error.strerror}; {fix}") from error
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


class SpecFile(pytest.File):
    """A spec, whose queries are tests."""

    def collect(self) -> Iterator[SpecItem]:
        try:
            spec = load_spec(self.path)
        except SpecError as error:
            raise self.CollectError(str(error)) from error
        for words in spec.warnings:
            self.warn(SpecWarning(words))
        for query in spec.queries:
            yield SpecItem.from_parent(self, name=query.id, spec=spec, query=query)


class SpecItem(pytest.Item):
    """A query: failed where it blocks, an error where it is undecided, with warnings of its path and its cost. `-k`
    finds it by its id and its tags."""

    def __init__(self, *, spec: Spec, query: Query, **given: Any) -> None:
        super().__init__(**given)
        self.spec, self.query = spec, query
        self.extra_keyword_matches.update(query.tags)

    def setup(self) -> None:
        items = (one for one in self.session.items if isinstance(one, SpecItem))
        selected = {one.query.id for one in items if one.spec.path == self.spec.path}
        try:
            found = _results(self.spec, [one.id for one in self.spec.queries if one.id in selected])
            self.result = _result(self.spec, found, self.query.id)
        except SpecError as error:
            pytest.fail(str(error), pytrace=False)
        if self.result.infra:
            pytest.fail(self.result.text, pytrace=False)

    def runtest(self) -> None:
        if self.result.hard_fail:
            pytest.fail(self.result.text, pytrace=False)
        for reason in self.result.reasons:
            warnings.warn_explicit(reason.words, SpecWarning, reason.file, reason.line)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.query.line - 1, self.name


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("rampgate_command", "the program of Rampgate, with its arguments", default="rampgate")
    parser.addini("rampgate_specs", "names of the specs whose queries are tests", "args", ["agentci_spec.yaml"])


def pytest_configure(config: pytest.Config) -> None:
    global _session
    new = Path(tempfile.gettempdir(), f"pytest-rampgate-{uuid.uuid4().hex}")
    shared = getattr(config, "workerinput", {}).get("rampgate_folder", new)
    _session = _Session(Path(shared), config.getini("rampgate_command"))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give the folder to a worker of xdist."""
    if _session is not None:
        node.workerinput["rampgate_folder"] = str(_session.folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    global _session
    if _session is not None and not hasattr(config, "workerinput"):
        shutil.rmtree(_session.folder, ignore_errors=True)
    _session = None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SpecFile | None:
    names: list[str] = parent.config.getini("rampgate_specs")
    return SpecFile.from_parent(parent, path=file_path) if any(map(file_path.match, names)) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if _session is not None:
        _session.item, _session.asked = item, False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Warn of a test that has a spec, asks no query and is skipped: `range(32)` over fewer queries hides lost ones."""
    try:
        return (yield)
    except pytest.skip.Exception:
        specs = (one for one in getattr(item, "funcargs", {}).values() if isinstance(one, Spec))
        spec = next(specs, None)
        if spec is not None and _session is not None and not _session.asked:
            words = f"{spec.path}: queries of the spec: {len(spec.queries)}; this skipped test asked none: is one lost?"
            warnings.warn_explicit(words, LostQuery, str(item.path), (item.location[1] or 0) + 1)
        raise
