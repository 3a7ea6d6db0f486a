"""The frame of a command: its context, its shared options, what it prints and writes, its errors and its exit code.

A command is a function of a `Context` and of its own options that returns an answer. Its module declares it with
`@command`; `rampgate.cli.COMMANDS` names it. Tests call the function itself.
"""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import typer

from rampgate.console import BadQuery, Failure, print_json, run
from rampgate.options import GONE, SETTINGS, SHARED

if TYPE_CHECKING:
    from datetime import date

    from evalcore.registry.files import RegistryFiles, Tree
    from evalcore.registry.registry import Registry
    from evalcore.yaml.findings import Finding, ValidationResult
    from rampgate.report.model import Report
    from rampgate.settings import Settings
    from rampgate.wiring import Parts
    from schemas.verticals import Vertical
    from streams.metrics import Metrics

NO_TERMINAL = "nothing was changed: there is no terminal to ask on; --yes goes ahead, --dry-run only shows the plan"
PARTS = {"kafka", "redis", "opik", "model"}
"""Flags of commands that talk to a part, whose logs are not shown but for errors; `model` has no option."""
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
ShownReport = Callable[[Any], "Report"] | str
"""What makes the report of an answer; as `module:function` where its import takes long, and `--help` needs none."""


class Document(dict[str, Any]):
    """An answer that is a JSON document of its own: what `--json` prints. `exit_code`: 1 where a check found
    something. `failure`: what could not be done with the answer; it is raised once the answer is given."""

    def __init__(self, fields: Mapping[str, Any], exit_code: int = 0, failure: Failure | None = None) -> None:
        super().__init__(fields)
        self.exit_code, self.failure = exit_code, failure


class Shown(Document, ABC):
    """A document that stdout has in a form of its own, unless `--json` asks for it."""

    @abstractmethod
    def show(self) -> None:
        """Writes to stdout."""


class _Declared(NamedTuple):
    report: ShownReport | None
    flags: Sequence[str]
    metrics: Sequence[str]
    gone: Mapping[str, str]


_COMMANDS: dict[Callable[..., Any], _Declared] = {}


@dataclass
class Context:
    """What a command is called with. Each part is read on first use, with the flags that the caller gave.

    `given`: the shared options by their key (`rampgate.options.SHARED`); those that are settings outrank environment
    and file. `now`: the time that counts, for tests.
    """

    given: Mapping[str, Any]
    now: datetime | None = None
    waited: float = field(default=0.0, init=False)
    """Seconds that the user took to answer `confirm`."""

    @classmethod
    def of(cls, now: datetime | None = None, **given: Any) -> Context:
        """The context of a call from code, as `Context.of(configs=folder)`."""
        return cls(given, now)

    @property
    def as_json(self) -> bool:
        return bool(self.given.get("json"))

    @property
    def reports(self) -> tuple[Path, ...]:
        return tuple(self.given.get("report") or ())

    @property
    def given_settings(self) -> dict[str, Any]:
        """The shared options that are settings, by the setting's name."""
        return {setting: self.given.get(option) for option, setting in SETTINGS.items()}

    @cached_property
    def settings(self) -> Settings:
        from rampgate.settings_sources import load_settings

        return load_settings(self.given_settings)

    @cached_property
    def time(self) -> datetime:
        """The time of the call, in UTC."""
        return self.now or datetime.now(UTC)

    @cached_property
    def today(self) -> date:
        from evalcore.registry import disk

        return self.now.date() if self.now is not None else disk.today()

    @cached_property
    def verticals(self) -> dict[str, Vertical]:
        """The registered verticals by name."""
        from rampgate.registry.verticals import load_verticals

        return load_verticals(self.settings.configs)

    @cached_property
    def tree(self) -> Tree:
        """The registry's files as they are on disk. Raises Failure where the folder is missing or can't be listed."""
        return read_tree(self.settings.configs)

    @cached_property
    def checked(self) -> tuple[RegistryFiles, list[Finding]]:
        """The registry's files, parsed, and all that validation finds in them."""
        from evalcore.validation import checked

        return checked(self.tree, self.today)

    @cached_property
    def validated(self) -> tuple[Registry | None, ValidationResult]:
        """The registry and what validation found; None where it found an error."""
        return read_registry(self.tree, self.today)

    @cached_property
    def registry(self) -> Registry:
        """The registry. Raises Failure where validation found an error."""
        registry, result = self.validated
        if registry is None:
            raise Failure(f"{result.errors[0]}; `rampgate rules validate` shows all findings")
        return registry

    def judging(self, vertical: str | None) -> Registry:
        """The registry whose judges score a candidate of the vertical. Raises Failure where validation found an error,
        there is no manifest, or the vertical is not registered."""
        from rampgate.registry.view import require_vertical

        if "dataset" not in self.registry.manifest:
            raise Failure(f"{self.settings.configs}: there is no evaluation manifest")
        if vertical is not None:
            require_vertical(vertical, self.registry.verticals)
        return self.registry

    @cached_property
    def readable(self) -> tuple[RegistryFiles, Registry]:
        """The files, and the registry that they give despite errors."""
        return readable(*self.checked)

    @property
    def standing(self) -> Path | None:
        path: Path | None = self.given.get("standing")
        return path

    @property
    def metrics_file(self) -> Path | None:
        path: Path | None = self.given.get("metrics_file")
        return path

    @cached_property
    def metrics(self) -> Metrics:
        """The metrics that `--metrics-file` takes."""
        from streams.metrics import Metrics

        return Metrics()

    @asynccontextmanager
    async def parts(self, *, registry: bool = False, soon: bool = False) -> AsyncIterator[Parts]:
        """Kafka, Redis and Opik, closed at the end; with the `registry` where they need it. `soon`: their connections
        give up within seconds."""
        from rampgate.wiring import make_parts
        from streams.redis.state import RedisStore

        settings = self.settings
        retry = min(settings.opik_retry_seconds, 5.0) if soon else settings.opik_retry_seconds
        parts = make_parts(settings.model_copy(update={"opik_retry_seconds": retry}), registry=registry)
        try:
            if soon:
                await parts.store.close()
                parts.store = RedisStore(settings.redis_url, settings.redis_prefix, timeout=3.0, tries=2)
            yield parts
        finally:
            await parts.close()

    def confirm(self, plan: Report, question: str, yes: bool) -> bool:
        """Show the plan on stderr, ask, and return whether the user agrees. Raises Failure where there is no terminal
        to ask on."""
        from rampgate.progress import stderr
        from rampgate.report.console import show

        if yes:
            return True
        show(plan, stderr())
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise Failure(NO_TERMINAL)
        asked = monotonic()
        agreed = typer.confirm(question, err=True)
        self.waited += monotonic() - asked
        return agreed


def read_tree(root: Path) -> Tree:
    """The files of a registry. Raises Failure where the folder is missing or can't be listed."""
    from evalcore.registry import disk
    from rampgate.registry.verticals import require_folder

    require_folder(root)
    try:
        return disk.read_tree(root)
    except OSError as error:
        raise Failure(f"{error.filename or root}: {error.strerror or error}") from error


def read_registry(tree: Tree, today: date | None = None) -> tuple[Registry | None, ValidationResult]:
    """The registry that a tree gives and what validation found; None where it found an error."""
    from evalcore.registry import disk
    from evalcore.registry.registry import build
    from evalcore.validation import checked
    from evalcore.yaml.findings import ValidationResult

    files, findings = checked(tree, today or disk.today())
    result = ValidationResult.of(tree.root, findings)
    return (build(files) if result.valid else None), result


def readable(files: RegistryFiles, findings: Sequence[Finding]) -> tuple[RegistryFiles, Registry]:
    """The files and the registry that they give despite errors, as long as every file can be read. Raises Failure
    where one can't: what is in it is unknown."""
    from evalcore.registry.registry import build
    from evalcore.yaml.findings import Severity

    wrong = next((finding for finding in findings if finding.severity is Severity.ERROR), None)
    try:
        registry = build(files)
    except (LookupError, ValueError, TypeError) as error:
        raise Failure(f"{wrong or error}; `rampgate rules validate` shows all findings") from error
    if files.unread:
        raise Failure(f"{wrong}; `rampgate rules validate` shows all findings")
    return files, registry


def log_errors() -> None:
    """What the parts log goes to stderr, errors alone."""
    from rampgate import logs

    logs.configure_logs("error", "console")


def command(
    report: ShownReport | None, flags: str = "", metrics: Sequence[str] = (), gone: Mapping[str, str] | None = None
) -> Callable[[FunctionT], FunctionT]:
    """Declare a function as a command.

    Its answer is a pydantic model or a `Document`, with an `exit_code`, or None, which says nothing; `report` makes the
    report of it. Without one the command shows what it does itself and returns its exit code. `flags` are the keys of
    the shared options that it takes, beside `--json` and `--report` of one with a report; `metrics` the names of the
    metrics that `--metrics-file` takes; `gone` says of an option that the command no longer has what replaces it. The
    function may be a coroutine.
    """

    def declare(function: FunctionT) -> FunctionT:
        both = ("report", "json") if report is not None else ()
        _COMMANDS[function] = _Declared(report, (*flags.split(), *both), metrics, gone or {})
        return function

    return declare


def gone_options(function: Callable[..., Any]) -> Mapping[str, str]:
    """What replaces each option that the command no longer has, or never had where others have had it."""
    own = inspect.signature(function).parameters
    shared = {option: words for option, words in GONE.items() if option.removeprefix("--") not in own}
    return {**shared, **_COMMANDS[function].gone}


def callback(function: Callable[..., Any]) -> Callable[..., None]:
    """Returns what the command line calls: the function with its shared options, in the frame."""
    declared = _COMMANDS[function]
    function.__annotations__.pop("return", None)  # an answer's type is imported by type checkers alone
    own = inspect.signature(function, eval_str=True).parameters
    names = [*own][1:]
    shared = [
        inspect.Parameter(f"shared_{key}", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for key, (kind, default) in SHARED.items()
        if key in declared.flags and key not in own
    ]

    def called(**options: Any) -> None:
        given = {key: options.get(f"shared_{key}") for key in declared.flags}
        context = Context(given)
        raise typer.Exit(_framed(function, declared, context, {name: options[name] for name in names}))

    mine = [own[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in names]
    signature = inspect.Signature([*mine, *shared])
    vars(called)["__signature__"] = signature  # what `inspect` and typer read
    called.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    called.__doc__ = function.__doc__
    return called


def _report(made_by: ShownReport, answer: Any) -> Report:
    if not isinstance(made_by, str):
        return made_by(answer)
    module, _, name = made_by.partition(":")
    report: Report = getattr(import_module(module), name)(answer)
    return report


def _framed(function: Callable[..., Any], declared: _Declared, context: Context, options: Mapping[str, Any]) -> int:
    """Call the command and give its answer: on stdout, and where `--report` says."""
    if context.reports:
        from rampgate.report.files import check_paths

        check_paths(context.reports)
    if declared.report is not None and {*declared.flags} & PARTS:
        log_errors()
    try:
        if inspect.iscoroutinefunction(function):
            answer = run(lambda: function(context, **options))
        else:
            answer = function(context, **options)
    except OSError as error:
        if error.filename is None:
            raise
        raise Failure(f"{error.filename}: {error.strerror or error}") from error
    except BadQuery as error:
        raise Failure(error.as_option()) from error
    except _unreachable() as error:
        raise Failure(str(error)) from error
    if declared.report is None or answer is None:
        return int(answer or 0)
    document = answer if isinstance(answer, Document) else answer.model_dump(mode="json", warnings="error")
    if context.metrics_file is not None:
        from rampgate.metrics_file import leave

        leave(context.metrics, context.metrics_file, *declared.metrics)
    report = _report(declared.report, answer) if context.reports or not context.as_json else None
    if report is not None and context.reports:
        from rampgate.report.files import write_all

        write_all(context.reports, report, document)
    if context.as_json:
        print_json(document)
    elif isinstance(answer, Shown):
        answer.show()
    elif report is not None:
        from rampgate.report.console import show

        show(report)
    if failure := getattr(answer, "failure", None):
        raise failure
    return int(answer.exit_code)


def _unreachable() -> tuple[type[Exception], ...]:
    """The errors of a part that is out of reach or refuses our key."""
    from agents.ports import Unauthorized, Unavailable

    return Unavailable, Unauthorized
