"""Writes a first spec, its JSON Schema and a workflow: `rampgate spec init` (AgentCI Step 3)."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.options import SPEC_NAME
from rampgate.report.model import Reason, Report, Section
from schemas.counting import counted

if TYPE_CHECKING:
    from evalcore.specs.conversion import Converted
    from evalcore.specs.reading import SpecReading
    from evalcore.yaml.findings import Finding

SCHEMA: Final = "agentci_spec.schema.json"
WORKFLOW: Final = Path(".github", "workflows", "agentci.yaml")
OPIK: Final = "opik:"
_ENTRY: Final = re.compile(r"[\w.]+:[\w.]+")
_QUERY: Final = re.compile(r"queries\[(\d+)\]\.(correctness|path|cost)\.(\w+)")
HEAD: Final = """\
# yaml-language-server: $schema={schema}
# What the agent is asked, and what is asserted of each answer in three layers: correctness blocks, path and cost warn.
#   rampgate spec validate {name}    rampgate spec test --config {name}
"""
FIRST: Final[dict[str, Any]] = {"query": "What can you do?", "tags": ["smoke"], "correctness": {"regex_match": r"\w"}}
"""What a spec begins with that is made of nothing else: that there is an answer."""


def begun(told: Mapping[str, Any]) -> Report:
    """The report of what was written, and of what could not be taken over."""
    rows = [[path, "written"] for path in told["written"]] + [
        [path, "kept, it is there already"] for path in told["kept"]
    ]
    reasons = [Reason("warning", words, "left-out") for words in told["left"]]
    if told["kept"]:
        reasons.append(Reason("warning", f"add {told['spec']} to `spec` in both matrices of {told['kept'][0]}", "kept"))
    result = f"{told['spec']}: {counted(told['queries'], 'query', 'queries')}, agent={told['agent']!r}"
    return Report("Spec", result, "warn" if reasons else "pass", [Section("Files", ("File", "What"), rows)], reasons)


@command(begun, flags="configs")
def init(
    context: Context,
    agent: Annotated[str | None, Option(help="the agent's id; without a terminal it has to be given")] = None,
    candidate: Annotated[
        str | None, Option(help="who answers: module:function, a command line, or an http address")
    ] = None,
    source: Annotated[
        str | None,
        Option(
            "--from",
            metavar="FILE",
            help="make queries of traces (JSON, JSON Lines), promptfoo's YAML, a suite.yaml, or a dataset, opik:NAME",
        ),
    ] = None,
    config: Annotated[Path, Option(help="where the spec goes")] = Path(SPEC_NAME),
    workflow: Annotated[
        bool, Option("--workflow/--no-workflow", help="also a workflow of GitHub, in which no job has code and a key")
    ] = True,
) -> Document:
    """Write a first spec, the JSON Schema by which editors complete it, and a GitHub workflow. Nothing is overwritten.

    On a terminal it asks for what is not given. What --from has and a spec can't say is named. Exit code 2 where a file
    is there already.

    Example: rampgate spec init --agent rag-agent --candidate agent:answer --from traces.jsonl
    """
    from importlib.metadata import version
    from importlib.resources import files

    from evalcore.specs.conversion import Converted
    from rampgate.files import create_files
    from schemas.publish.file_schemas import SPEC, schema

    if config.exists() or config.is_symlink():
        raise Failure(f"--config {config}: is there already; edit it, or name another file")
    found = _converted(source, context) if source is not None else Converted([FIRST])
    if not found.queries:
        raise Failure(f"--from {source}: must have a question, got none: {'; '.join(found.left[:5]) or 'it is empty'}")
    agent = agent or found.agent or _asked("The agent's id", "--agent NAME")
    if candidate is None and found.candidate is None and _on_terminal():
        candidate = _asked("Who answers (module:function, a command line, or an address)", "--candidate") or None
    answers = _candidate(candidate, config.parent) if candidate is not None else found.candidate
    data: dict[str, Any] = {"version": 1, "agent": agent}
    data |= {"candidate": dict(answers)} if answers else {}
    queries, left = [dict(one) for one in found.queries], [*found.left]
    text, reading = _checked({**data, "queries": queries}, config)
    if reading.errors:
        left += _without(queries, reading.errors)
        text, reading = _checked({**data, "queries": queries}, config)
    if reading.errors:
        raise Failure("; ".join(map(str, reading.errors)))
    home = next((one for one in config.absolute().parents if (one / ".git").exists()), config.absolute().parent)
    made = {config: text, config.parent / SCHEMA: f"{json.dumps(schema(SPEC), indent=2, ensure_ascii=False)}\n"}
    if workflow:
        name = config.absolute().relative_to(home).as_posix()
        written = files("rampgate.spec").joinpath("workflow.yaml").read_text(encoding="utf-8")
        made[home / WORKFLOW] = written.replace("@SPEC@", json.dumps(name)).replace("@VERSION@", version("rampgate"))
    kept = [path for path in made if path != config and (path.exists() or path.is_symlink())]
    create_files({path: words for path, words in made.items() if path not in kept})
    return Document(
        {
            "agent": agent,
            "spec": str(config),
            "queries": len(queries),
            "written": [_shown(path) for path in made if path not in kept],
            "kept": [_shown(path) for path in kept if path.name == WORKFLOW.name],
            "left": left,
            "warnings": [str(one) for one in reading.warnings],
        }
    )


def _converted(source: str, context: Context) -> Converted:
    """What the spec is made of. Raises Failure for an unknown form."""
    from evalcore.specs.conversion import of_items, of_promptfoo, of_traces
    from rampgate.input_files import content, lines

    if source.startswith(OPIK):
        from rampgate.suite.dataset_cases import dataset_cases
        from schemas.checks.suite import Cases, SuiteFile
        from schemas.specs import SpecCandidate

        cases = Cases(dataset=source.removeprefix(OPIK))
        named = SuiteFile.model_construct(
            suite="init", agent="init", candidate=SpecCandidate.model_construct(), cases=cases, score=""
        )
        return of_items([row for _, row in dataset_cases(context.settings, named)])
    path = Path(source)
    if path.suffix in (".yaml", ".yml"):
        data = _yaml(path, content(path))
        if "suite" in data and "cases" in data:
            return _of_suite(path, context)
        if "tests" in data or "prompts" in data:
            return of_promptfoo(data)
        raise Failure(f"--from {path}: must be promptfoo's YAML (`tests`) or a suite's (`cases`), got neither")
    raw = content(path)
    if raw.lstrip()[:1] == b"[" or path.suffix == ".json":
        return of_traces(_rows(path, raw))
    return of_traces(row for _, row in lines(path))


def _of_suite(path: Path, context: Context) -> Converted:
    import orjson

    from evalcore.specs.conversion import of_suite
    from rampgate.suite.opened import suite_in

    suite = suite_in(context.settings, path)
    named = {name: check.json_schema for name, check in suite.file.checks.items() if check.json_schema is not None}
    schemas = {name: orjson.loads((path.parent / file).read_bytes()) for name, file in named.items()}
    return of_suite(suite.file, [case.row for case in suite.cases], schemas)


def _yaml(path: Path, raw: bytes) -> dict[str, Any]:
    """The mapping of a foreign YAML file, which may have what ours may not: aliases, tags that are texts."""
    import yaml

    try:
        found = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(raw).get_single_data()
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Failure(f"--from {path}: must be YAML, got what is none: {' '.join(str(error).split())[:300]}") from error
    if not isinstance(found, dict):
        raise Failure(f"--from {path}: must be a mapping of fields, got something else")
    return found


def _rows(path: Path, raw: bytes) -> list[dict[str, Any]]:
    import orjson

    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise Failure(f"--from {path}: must be JSON, got what is none: {error}") from error
    rows = found if isinstance(found, list) else [found]
    return [one for one in rows if isinstance(one, dict)]


def _candidate(told: str, home: Path) -> dict[str, Any]:
    """Who answers, as a spec says it; the Python files beside the spec are the code that answers."""
    if told.startswith(("http://", "https://")):
        return {"url": told}
    parts = {"parts": {"code": {"files": ["*.py"]}}} if any(home.glob("*.py")) else {}
    return ({"entry": told} if _ENTRY.fullmatch(told) else {"command": shlex.split(told)}) | parts


def _checked(data: Mapping[str, Any], config: Path) -> tuple[str, SpecReading]:
    """The spec's text, and what was found in it."""
    from evalcore.specs.reading import read_spec
    from rampgate.suite.spec_files import no_include

    text = HEAD.format(schema=SCHEMA, name=config.name) + _dumped(data)
    return text, read_spec(str(config), text.encode(), no_include)


def _without(queries: list[dict[str, Any]], wrong: Iterable[Finding]) -> list[str]:
    """Takes assertions out of the queries that no spec may have, such as a pattern that RE2 does not take."""
    left = []
    for one in wrong:
        if found := _QUERY.match(one.field):
            number, layer, name = int(found[1]), found[2], found[3]
            if queries[number].get(layer, {}).pop(name, None) is not None:
                left.append(f"query {number + 1}: {name}: {one.message}")
            if not queries[number].get(layer, True):
                del queries[number][layer]
    return left


def _dumped(data: Mapping[str, Any]) -> str:
    """The data as YAML that our reader reads as it is: a text that could be read as something else is in quotes."""
    import yaml

    from evalcore.yaml.editing import as_text

    class Dumper(yaml.SafeDumper):  # type: ignore[misc] # PyYAML has no types
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        style = None if as_text(value) == value else "|" if "\n" in value and value.isprintable() else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return str(yaml.dump(dict(data), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110))


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _asked(question: str, option: str) -> str:
    """What the user answers. Raises Failure where there is no terminal to ask on."""
    if not _on_terminal():
        raise Failure(f"there is no terminal to ask on: give {option}")
    import typer

    return str(typer.prompt(question, err=True)).strip()


def _shown(path: Path) -> str:
    """The path from the working folder on, where it is below that."""
    here = Path.cwd()
    return str(path.absolute().relative_to(here)) if path.absolute().is_relative_to(here) else str(path)
