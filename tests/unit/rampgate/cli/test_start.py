"""`--help` answers at once: it loads the options of the commands, and nothing that the commands need to run. The stand-
ins are an extra: without it `dev` and `demo` say what to install, and nothing else imports them."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from rampgate.cli import COMMANDS, GONE, app
from rampgate.command import gone_options
from rampgate.console import Failure
from schemas.dead_letter_answers import MAX_ATTEMPTS
from tests.root import ROOT

HEAVY = (
    *(
        "agents",
        "evalcore",
        "streams",
        "aiohttp",
        "aiokafka",
        "asyncio",
        "boto3",
        "botocore",
        "confluent_kafka",
        "faust",
    ),
    *("httpx", "litellm", "markdown_it", "mode", "msgspec", "numpy", "opik", "orjson", "prometheus_client"),
    *("pydantic", "pydantic_core", "redis", "rich", "scipy", "stamina", "structlog", "uvloop", "yaml"),
)
OWN = ("rampgate.settings", "rampgate.wiring", "rampgate.queries", "rampgate.local")
PROGRAM = """
import sys
from rampgate.cli import main
sys.argv = ["rampgate", *sys.argv[1:]]
try:
    main()
finally:
    print("loaded:", *sys.modules)
"""


def commands() -> list[tuple[str, ...]]:
    """Every command, and every group of commands, by its words."""
    found: list[tuple[str, ...]] = [()]
    program: Any = get_command(app)
    for name, command in program.commands.items():
        found += [(name,), *((name, inner) for inner in getattr(command, "commands", ()))]
    return found


@pytest.mark.parametrize("words", [(), ("gate", "run"), ("dead-letters", "replay"), ("dev",)], ids=" ".join)
def test_help_loads_nothing_that_commands_need_to_run(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    text, _, modules = done.stdout.partition("loaded:")
    assert "Usage: rampgate" in text
    loaded = set(modules.split())
    heavy = HEAVY if words else (*HEAVY, "typer")
    assert {name.split(".")[0] for name in loaded} & {*heavy} == set()
    assert [name for name in loaded if name.startswith(OWN)] == []


LATER = ("aiohttp", "boto3", "botocore", "faust", "google", "jsonschema", "litellm", "numpy", "opik", "redis", "scipy")


def test_a_run_of_a_suite_loads_what_only_some_runs_need_when_they_need_it(tmp_path: Path) -> None:
    """A run that finds everything kept is mostly its start: two in three of its seconds were such modules."""
    words = ["suite", "run", "examples/suite/suite.yaml", "--plan", "--store", str(tmp_path / "store.db")]
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.partition("loaded:")[2].split())
    assert "rampgate.suite.runs.session" in loaded
    assert {name.split(".")[0] for name in loaded} & set(LATER) == set()
    assert loaded & {"agents.codec", "evalcore.specs.reading", "evalcore.trajectory.langgraph"} == set()


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for words in commands():
        with pytest.raises(SystemExit) as ended:
            app([*words, "--help"])
        text = capsys.readouterr().out
        assert ended.value.code in (0, None), words
        assert "Example: " in text or "Commands:" in text or not words, words


def test_help_lists_commands_that_there_are_and_groups_that_have_some() -> None:
    for name, entry in COMMANDS.items():
        module, _, function = entry.module.partition(":")
        if function:
            assert callable(getattr(import_module(module), function)), name
        else:
            assert any(other.startswith(f"{name} ") for other in COMMANDS), name


def test_help_loads_no_modules_of_commands_and_a_command_only_its_own() -> None:
    modules = {entry.module.partition(":")[0] for entry in COMMANDS.values()} - {""}
    for words, own in ((("--help",), set()), (("coverage", "--help"), {"rampgate.commands.queries"})):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words], cwd=ROOT, capture_output=True, text=True, check=True
        )
        loaded = set(done.stdout.partition("loaded:")[2].split())
        assert loaded & modules == own


def test_a_command_or_option_that_there_was_is_refused_by_name() -> None:
    for name, entry in COMMANDS.items():
        module, _, function = entry.module.partition(":")
        gone = gone_options(getattr(import_module(module), function)) if function else {}
        for words in (f"{name} {option}" for option in gone):
            result = CliRunner().invoke(app, words.split())
            assert isinstance(result.exception, Failure), words
            assert f"{words.split()[-1]}: is no option any more; " in str(result.exception)
    for words in GONE:
        assert f"{words}: is no " in str(CliRunner().invoke(app, words.split()).exception)


def test_the_default_of_max_attempts_is_the_one_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        app(["dead-letters", "replay", "--help"])
    assert f"default: {MAX_ATTEMPTS}" in " ".join(capsys.readouterr().out.split())


def test_the_version_is_the_packages_and_asks_for_no_command() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.stdout.strip()) == (0, version("rampgate"))


@pytest.mark.parametrize("command", ["dev", "demo"])
@pytest.mark.parametrize("package", ["confluent_kafka", "uuid6"])
def test_without_the_extra_the_command_names_it(monkeypatch: pytest.MonkeyPatch, command: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    result = CliRunner().invoke(app, [command])
    assert isinstance(result.exception, Failure)
    assert package in str(result.exception)
    assert "pip install 'rampgate[local]'" in str(result.exception)
