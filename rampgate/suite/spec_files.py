"""Reads a spec from disk, with the files that it includes, and makes it the suite of cases that it is.

What runs suites is imported once there is one to make: `spec validate`, which pytest waits for, makes none.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evalcore.registry.judge import digest
from evalcore.specs.correctness import assertions
from evalcore.specs.layers import CorrectnessTotal
from evalcore.specs.merging import RUBRICS, CantInclude
from evalcore.specs.reading import SpecReading, read_spec, spec_hash
from evalcore.specs.rubric import in_ensemble, rubric_judges
from evalcore.yaml.findings import Finding
from evalcore.yaml.source_locations import Document, FieldPath
from rampgate.input_files import BadFile, content
from rampgate.options import SPEC_NAME
from schemas.checks.suite import Cases, SuiteFile

if TYPE_CHECKING:
    from rampgate.suite.suite_files import Suite, SuiteCase
    from schemas.specs import AgentSpec, GoldenQuery, SpecCandidate

SCORE: Final = "correctness"
_NO_WORD: Final = re.compile(r"[^a-z0-9_-]+")


@dataclass(frozen=True)
class LoadedSpec:
    """A spec that is valid. `written`: by the query's id, the document that it is written in, and its number there.
    `off`: by query, the assertions of `defaults` that a null switches off. `ensemble`: the share of the queries that
    several models judge; None: as the spec says. `theirs`: the spec of a proposal, which declares the candidate."""

    path: Path
    spec: AgentSpec
    written: Mapping[str, tuple[Document, int]]
    warnings: Sequence[Finding]
    off: Mapping[str, Sequence[FieldPath]]
    ensemble: float | None = None
    theirs: Path | None = None

    @cached_property
    def hash(self) -> str:
        """`sha256:…` of all that the spec says, what it includes and its defaults too."""
        return spec_hash(self.spec)

    def place(self, query: str, field: FieldPath) -> tuple[str, int]:
        """Returns the file and the line of a query's field, or of the nearest one around it; without a line where the
        spec has no such query."""
        if query not in self.written:
            return str(self.path), 0
        document, number = self.written[query]
        path = ("queries", number, *field)
        return document.source(path)[0], document.at(path)[0]

    @cached_property
    def suite(self) -> Suite:
        """The suite: a query is a case, and its tags are slices. Raises BadFile where no one answers, or a part of who
        does can't be read."""
        from rampgate.suite.suite_files import suite_of

        spec = self.spec
        file = SuiteFile.model_construct(
            suite=suite_name(spec.agent, self.path), agent=spec.agent, candidate=_candidate(self),
            cases=Cases(file=self.path.name), samples=1, score=SCORE,
        )  # fmt: skip
        return suite_of(file, self.path, [_case(one, spec, self.ensemble) for one in spec.queries], self.theirs)


def open_spec(path: Path, ensemble: float | None = None, proposed: Path | None = None) -> LoadedSpec:
    """Returns the spec. Raises BadFile with all that is wrong in it.

    With `proposed`, a folder, who answers is the one that the spec of that name there declares. Queries and all that is
    asserted of them stay those of `path`; queries that are new there are asked, too.
    """
    reading = reading_of(path)
    if reading.spec is None or reading.document is None:
        raise BadFile("; ".join(map(str, reading.errors)))
    written = {str(query.id): (reading.document, number) for number, query in enumerate(reading.spec.queries)}
    loaded = LoadedSpec(path, reading.spec, written, reading.warnings, reading.off or {}, ensemble)
    return loaded if proposed is None else _proposed(loaded, proposed)


def _proposed(loaded: LoadedSpec, proposed: Path) -> LoadedSpec:
    from rampgate.suite.suite_files import proposed_candidate

    found: list[LoadedSpec] = []

    def read(theirs: Path) -> SpecCandidate:
        found.append(open_spec(theirs))
        return _candidate(found[-1])

    theirs, candidate = proposed_candidate(loaded.path, proposed, read)
    known = {query.id for query in loaded.spec.queries}
    new = [query for query in found[0].spec.queries if query.id not in known]
    queries = (*loaded.spec.queries, *new)
    spec = loaded.spec.model_copy(update={"candidate": candidate, "queries": queries})
    return replace(loaded, spec=spec, written={**found[0].written, **loaded.written}, theirs=theirs)


def _candidate(loaded: LoadedSpec) -> SpecCandidate:
    if loaded.spec.candidate is None:
        raise BadFile(
            f"{loaded.path}: candidate: must be there, got nothing; write `candidate: {{entry: module:function}}`, a "
            "`command` or a `url`"
        )
    return loaded.spec.candidate


def reading_of(path: Path) -> SpecReading:
    """Returns the spec with all that was found in it. Raises BadFile where the file itself can't be read."""
    if path.exists() and not path.is_file():
        raise BadFile(f"{path}: must be a file, got something else; name the spec's YAML file")
    root = path.parent.resolve()

    def fetch(file: str, target: str) -> tuple[str, bytes]:
        return _included(root, path.parent, file, target)

    return read_spec(str(path), content(path), fetch)


def no_include(file: str, target: str) -> tuple[str, bytes]:
    """Includes nothing."""
    raise CantInclude("nothing is included here", "write it out")


def suite_name(agent: str, path: Path) -> str:
    """Returns the name under which a spec's runs are stored: another one for each spec of a folder."""
    of = [agent] if path.stem == Path(SPEC_NAME).stem else [agent, path.stem]
    plain = "-".join(["spec", *(_NO_WORD.sub("-", one.lower()).strip("-") for one in of)])
    exact = plain == "-".join(["spec", *of]) and len(plain) <= 63
    return plain if exact else f"{plain[:50].rstrip('-')}-{digest(of)[:12]}"


def templates() -> list[str]:
    """Returns the names of the rubric templates."""
    found = (one.name for one in files("evalcore.specs").joinpath("rubrics").iterdir())
    return sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml"))


def _included(root: Path, home: Path, file: str, target: str) -> tuple[str, bytes]:
    """The name and the content of what `file` includes: a template, or a file below `root`, the spec's folder."""
    if target.startswith(RUBRICS):
        name = target.removeprefix(RUBRICS)
        if name not in templates():
            known = ", ".join(RUBRICS + one for one in templates())
            raise CantInclude("there is no such rubric", f"write one of {known}")
        return target, files("evalcore.specs").joinpath("rubrics", f"{name}.yaml").read_bytes()
    if not target.strip() or "\0" in target or Path(target).is_absolute():
        raise CantInclude("it is no path from the including file on", "write a relative path such as shared/tone.yaml")
    named = Path(os.path.normpath(Path(file).parent / target))
    found = named.resolve()
    if not found.is_relative_to(root):
        fix = "put the file into the spec's folder"
        raise CantInclude(f"it leads out of the spec's folder, to {found}", fix)
    if found.exists() and not found.is_file():
        raise CantInclude("it is no regular file", "name a YAML file")
    try:
        return str(named), found.read_bytes()
    except OSError as error:
        why = f"{named} can't be read: {error.strerror or error}"
        raise CantInclude(why, f"write the file, from {Path(file).parent} on, or remove the include") from error


def _case(query: GoldenQuery, spec: AgentSpec, ensemble: float | None) -> SuiteCase:
    from rampgate.suite.suite_files import SuiteCase

    name = str(query.id)
    row: dict[str, Any] = {"id": name, "input": query.query, "tags": list(query.tags)}
    if query.correctness is not None:  # what is expected of it: answers to another question are not compared
        row["expected"] = query.correctness.model_dump(mode="json", exclude_none=True)
    judges = rubric_judges(query, spec.judge_config, in_ensemble(name, spec.judge_config, ensemble))
    total = CorrectnessTotal(query, judges)
    return SuiteCase(name, row, query.tags, None, query.tags, assertions(query.correctness), judges, {SCORE: total})
