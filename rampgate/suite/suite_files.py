"""Reads a suite with all that it names: cases, parts of the candidate, schemas of checks. Says what is wrong where."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson

from evalcore.registry.judge import Judge, digest
from evalcore.scoring.items import identity
from evalcore.suite.checks import AnswerCheck, Checker, Total
from evalcore.suite.draw import smoke_set
from rampgate.input_files import BadFile, file_as, lines
from rampgate.registry.rule_history import NoHistory, commit_of, git_bytes
from rampgate.suite.generation import configuration_of
from schemas.checks.suite import Candidate, Check, Part, SuiteFile

Placed = tuple[str, Mapping[str, Any]]
"""A case's row, behind where it stands: file and line, or the dataset's item."""
NAMES = ("id", "tags", "cluster")
"""Fields of a case that say what it is called and counted under."""
CODE: Final = "code"
"""The part that says which revision answers at an address, where no file can be looked at."""
NO_CODE: Final = (".rampgate", ".git", "__pycache__", ".venv", "venv", "node_modules")
"""Folders that have none of the candidate's own code; an interpreter among them is used where it stands."""
CandidateT = TypeVar("CandidateT", bound=Candidate)
Fetching = Callable[[SuiteFile], Iterable[Placed]]


@dataclass(frozen=True)
class SuiteCase:
    """One case. `row` is its line; `slices` are those of its tags that the suite compares. `checks` and `judges` are
    its own, beside the suite's; its judges wait for its checks. `totals` are scores that its others come to."""

    id: str
    row: Mapping[str, Any]
    tags: tuple[str, ...]
    cluster: str | None
    slices: tuple[str, ...] = ()
    checks: Mapping[str, AnswerCheck] = field(default_factory=dict)
    judges: Sequence[Judge] = ()
    totals: Mapping[str, Total] = field(default_factory=dict)

    @property
    def question(self) -> str:
        """The hash of what is asked and expected, whatever the case is called and counted under."""
        metadata = self.row.get("metadata")
        asked = {name: value for name, value in self.row.items() if name not in NAMES}
        if isinstance(metadata, Mapping):
            asked["metadata"] = {name: value for name, value in metadata.items() if name not in NAMES}
        return digest(asked)


@dataclass(frozen=True)
class Suite:
    """A suite, read whole. `folder` is where the candidate is; `parts` are the hashes of its parts, `values` those that
    it is told. `unnamed` is code of the candidate that is in no part, and `code` then the commit that has it; `dropped`
    are parts of the target branch's suite that the proposal's lacks. `evidence`: our own `remediation run` answers, as
    the target's suite says."""

    file: SuiteFile
    folder: Path
    cases: Sequence[SuiteCase]
    checks: Mapping[str, AnswerCheck]
    parts: Mapping[str, str]
    values: Mapping[str, str]
    unnamed: str = ""
    code: str = ""
    dropped: tuple[str, ...] = ()
    evidence: bool = False

    @property
    def configuration(self) -> str:
        """The hash of all parts, of the program or function that answers, and of the commit of code in no part."""
        told = self.file.candidate
        started = told.model_dump(mode="json", include={"command", "entry", "folder"}, exclude_none=True)
        return configuration_of(self.parts, started if told.url is None else None, self.code)

    def asking(self, cases: Collection[str], samples: int) -> Suite:
        """The suite with these cases alone, each asked so many times."""
        some = [case for case in self.cases if case.id in cases]
        return replace(self, cases=some, file=self.file.model_copy(update={"samples": samples}))

    def drawn(self, *, smoke: bool) -> list[SuiteCase]:
        """The cases of the smoke set, or all."""
        if not smoke:
            return list(self.cases)
        by_id = {case.id: case for case in self.cases}
        return [
            by_id[name]
            for name in smoke_set({one.id: one.tags for one in self.cases}, self.file.safety, self.file.smoke)
        ]


def _not_fetched(file: SuiteFile) -> Iterable[Placed]:
    raise BadFile(f"cases.dataset: {file.cases.dataset!r} is not read here; write its items into a file")


def read_suite(path: Path, fetched: Fetching = _not_fetched, proposed: Path | None = None) -> Suite:
    """Raises BadFile with all that is wrong in the suite's file, or with the first that is in what it names. `fetched`
    gives the items of a suite whose cases are a dataset. With `proposed`, a folder, the candidate is the one that the
    suite's file there declares, with its parts there; all that it is asked and judged by stays that of `path`."""
    file, folder = file_as(SuiteFile, _regular(path)), path.parent
    dropped: tuple[str, ...] = ()
    theirs, evidence = path, _is_ours(file.candidate)
    if proposed is not None:
        theirs, candidate = proposed_candidate(path, proposed, lambda at: file_as(SuiteFile, at).candidate)
        dropped = tuple(sorted(set(file.candidate.parts) - set(candidate.parts)))
        evidence = evidence and _same_command(file.candidate, folder, candidate, proposed)
        file = file.model_copy(update={"candidate": candidate})
    cases = _cases(folder / file.cases.file) if file.cases.file is not None else _items(fetched(file))
    return replace(suite_of(file, path, cases, theirs), dropped=dropped, evidence=evidence)


def _same_command(ours: Candidate, home: Path, theirs: Candidate, proposed: Path) -> bool:
    """Tells whether a proposal starts the same command with the same settings, which could name another cluster."""
    said = ["command", "environment", "folder"]
    settings = [at / of.folder / "rampgate.toml" for at, of in ((home, ours), (proposed, theirs))]
    held = {path.read_bytes() if path.is_file() else b"" for path in settings}
    return all(getattr(ours, name) == getattr(theirs, name) for name in said) and len(held) == 1


def _is_ours(candidate: Candidate) -> bool:
    """Tells whether a candidate is the command that runs workflows on a cluster and reads them itself."""
    return tuple(candidate.command or ())[:3] == ("rampgate", "remediation", "run")


def proposed_candidate(path: Path, proposed: Path, read: Callable[[Path], CandidateT]) -> tuple[Path, CandidateT]:
    """Returns the file of that name in the `proposed` folder, and the candidate that it declares. Raises BadFile where
    that folder or the candidate's is not the proposal's own."""
    theirs = proposed / path.name
    checkout = _checkout_of(proposed)
    if theirs.exists() and not (theirs.is_file() and theirs.resolve().is_relative_to(proposed.resolve())):
        raise BadFile(f"{theirs}: is no file of that folder, but leads elsewhere; put the suite's file itself there")
    candidate = read(theirs)
    if candidate.url is None and not (proposed / candidate.folder).resolve().is_relative_to(checkout):
        raise BadFile(f"{theirs}: candidate.folder: {candidate.folder!r} leads out of the proposal's checkout")
    return theirs, candidate


def suite_of(file: SuiteFile, path: Path, cases: Sequence[SuiteCase], theirs: Path | None = None) -> Suite:
    """Returns the suite of these cases. `path` is its file; `theirs`, where it is another one, declares the candidate,
    which is beside it. Raises BadFile."""
    theirs = theirs or path
    home = theirs.parent
    known = {tag for case in cases for tag in case.tags}
    for place, named in (("safety", file.safety), ("slices", file.slices)):
        if strange := sorted(set(named) - known):
            raise BadFile(f"{path}: {place}: no case has the tag {strange[0]!r}")
    compared = known if not file.slices else {*file.slices, *file.safety}
    cases = [replace(case, slices=tuple(tag for tag in case.tags if tag in compared)) for case in cases]
    parts = {name: _hash(home, theirs, name, part) for name, part in file.candidate.parts.items()}
    values = {name: part.value for name, part in file.candidate.parts.items() if part.value is not None}
    checks = {name: _checker(path.parent, path, name, check) for name, check in file.checks.items()}
    unnamed = _unnamed(file.candidate, home)
    return Suite(file, home, cases, checks, parts, values, unnamed, _commit_and_changes(home) if unnamed else "")


def _checkout_of(proposed: Path) -> Path:
    """The root of the folder's checkout. Raises BadFile for a link on the way from there: it could lead to the target's
    folder, which would be judged in its place."""
    for one in (proposed.absolute(), *proposed.absolute().parents):
        if one.is_symlink():
            raise BadFile(f"{proposed}: {one} is a link; a proposal's suite stands in a folder of its own checkout")
        if (one / ".git").exists():
            return one.resolve()
    return Path("/")


def files_of(part: Part | None, folder: Path) -> list[Path]:
    """The files of a part in this folder."""
    patterns = part.files or () if part is not None else ()
    return [path for pattern in patterns for path in sorted(folder.glob(pattern)) if path.is_file()]


def _cases(path: Path) -> list[SuiteCase]:
    found = _checked((f"{path}:{line}", f"line {line}", row) for line, row in lines(_regular(path)))
    if not found:
        raise BadFile(f"{path}: has no case; one is {{id, input, tags}} on a line")
    return found


def _regular(path: Path) -> Path:
    """The path, unless something else than a file is there: who reads a FIFO may wait for ever. Raises BadFile."""
    if path.exists() and not path.is_file():
        raise BadFile(f"{path}: is no regular file")
    return path


def _items(placed: Iterable[Placed]) -> list[SuiteCase]:
    """Cases of a dataset: id and tags stand in an item's metadata, or beside it (PC5 §5.3)."""
    return _checked((place, place, _as_case(item)) for place, item in placed)


def _as_case(item: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = item.get("metadata")
    inner = metadata if isinstance(metadata, Mapping) else {}
    beside = {name: inner[name] for name in ("tags", "cluster") if name in inner and name not in item}
    return {**item, **beside, "id": identity(item)}


def _checked(placed: Iterable[tuple[str, str, Mapping[str, Any]]]) -> list[SuiteCase]:
    """The cases of rows that stand behind their place in full and in short. Raises BadFile."""
    cases: list[SuiteCase] = []
    places: dict[str, str] = {}
    for place, short, row in placed:
        known = row.get("id")
        if isinstance(known, bool) or not isinstance(known, (str, int)) or known == "":
            raise BadFile(f"{place}: id: a case has one, a text or a whole number")
        if (before := places.setdefault(str(known), short)) != short:
            raise BadFile(f"{place}: id: {str(known)[:80]!r} is the id of {before} too")
        if row.get("input") is None:
            raise BadFile(f"{place}: input: a case has one")
        tags = row.get("tags", [])
        if not isinstance(tags, list) or not all(isinstance(tag, str) and tag for tag in tags):
            raise BadFile(f"{place}: tags: a list of texts is required")
        cluster = row.get("cluster")
        if cluster is not None and (not isinstance(cluster, str) or not cluster):
            raise BadFile(f"{place}: cluster: a text is required")
        cases.append(SuiteCase(str(known), row, tuple(dict.fromkeys(tags)), cluster))
    return cases


def _hash(folder: Path, path: Path, name: str, part: Part) -> str:
    """The hash of a part's value, or of its files' names and contents."""
    if part.files is None:
        return digest({"value": part.value})
    found: dict[str, str] = {}
    for pattern in part.files:
        try:
            matched = sorted(one for one in folder.glob(pattern) if one.is_file())
        except (NotImplementedError, ValueError) as error:
            raise BadFile(
                f"{path}: candidate.parts.{name}.files: {pattern!r} is no pattern of names in {folder}"
            ) from error
        if not matched:
            raise BadFile(f"{path}: candidate.parts.{name}.files: no file is {pattern!r} in {folder}")
        for one in matched:
            if not one.resolve().is_relative_to(folder.resolve()):
                raise BadFile(
                    f"{path}: candidate.parts.{name}.files: {pattern!r} leads out of the suite's folder, to "
                    f"{one.resolve()}: git has no such part of another commit; put the file into the folder"
                )
        try:
            found |= {
                one.relative_to(folder).as_posix(): hashlib.sha256(one.read_bytes()).hexdigest() for one in matched
            }
        except OSError as error:
            raise BadFile(f"{path}: candidate.parts.{name}.files: {error.filename}: {error.strerror}") from error
    return digest({"files": found})


def _unnamed(told: Candidate, home: Path) -> str:
    """The first code of the candidate that is in no part, empty where parts name all: the file that its function or
    command is in, and all others of that ending in its folder, any of which it may load. Of code that is elsewhere, at
    an address or installed, only the part `code` can tell which it is."""
    folder = home / told.folder
    if told.entry is not None:
        module = told.entry.partition(":")[0].replace(".", "/")
        words = [f"{module}.py", f"{module}/__init__.py"]
    else:
        words = [*(told.command or ())]
    # A word may be longer than a name can be.
    here = [folder / one for one in words if not one.startswith("/") and os.path.isfile(folder / one)]  # noqa: PTH113
    if not here:
        return "" if CODE in told.parts else (told.url or told.entry or " ".join(words))
    named = {path.resolve() for part in told.parts.values() for path in files_of(part, home)}
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one not in NO_CODE)
        here += [Path(at, one) for one in folders if Path(at, one).is_symlink()]  # no part has what it leads to
        here += [Path(at, name) for name in sorted(names) if here[0].suffix and name.endswith(here[0].suffix)]
    return next((one.relative_to(folder).as_posix() for one in here if one.resolve() not in named), "")


def _commit_and_changes(folder: Path) -> str:
    """The commit, with the hash of what differs from it in files that git has; where git does not know the folder, the
    commit that CI names."""
    try:
        commit = commit_of(folder, "HEAD")
        changed = git_bytes(folder, None, "diff", "--no-ext-diff", "--no-textconv", "--binary", "HEAD")
    except NoHistory:
        return os.environ.get("GITHUB_SHA", "")
    return f"{commit}+{hashlib.sha256(changed).hexdigest()}" if changed else commit


def _checker(folder: Path, path: Path, name: str, check: Check) -> Checker:
    schema: Any = None
    try:
        if check.json_schema is not None:
            schema = orjson.loads(_regular(folder / check.json_schema).read_bytes())
        return Checker(check, schema)
    except OSError as error:
        raise BadFile(f"{folder / str(check.json_schema)}: can't be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise BadFile(f"{folder / str(check.json_schema)}: is no JSON: {error}") from error
    except ValueError as error:
        raise BadFile(f"{path}: checks.{name}: {error}") from error
