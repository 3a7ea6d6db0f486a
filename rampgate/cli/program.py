"""The program as typer sees it: groups of commands, whose modules are imported when one of theirs is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from rampgate.cli import COMMANDS, GONE, Entry, help_text
from rampgate.console import Failure


class FramedCommand(TyperCommand):
    """A command of the frame; options that it no longer has are refused with what replaces them, `gone`."""

    gone: Mapping[str, str] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for option in (word.partition("=")[0] for word in args):
            if option in self.gone:
                raise Failure(f"{option}: is no option any more; {self.gone[option]}")
        return super().parse_args(ctx, args)


class LoadedCommands(MutableMapping[str, Any]):
    """The commands of a group, or of the program, by name; each is built when it is asked for."""

    def __init__(self, group: str) -> None:
        before = f"{group} " if group else ""
        names = (name.removeprefix(before) for name in COMMANDS if name.startswith(before))
        self._entries = {name: COMMANDS[before + name] for name in names if " " not in name}
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _built(name, self._entries[name])
        return self._built[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._built[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("a command can't be taken away")

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _built(name: str, entry: Entry) -> Any:
    module, _, function = entry.module.partition(":")
    if not module:
        return Group(name, no_args_is_help=True)
    from rampgate.command import callback, gone_options

    called = getattr(import_module(module), function)
    made = typer.Typer(rich_markup_mode=None, add_completion=False)
    made.command(name, cls=FramedCommand)(callback(called))
    command: Any = get_command(made)
    command.gone = gone_options(called)
    return command


class Group(TyperGroup):
    """A group of the program's commands."""

    def __init__(self, name: str = "", **attributes: Any) -> None:
        super().__init__(name=name, **{"rich_markup_mode": None, **attributes})
        self.commands = LoadedCommands(name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_text(self.name or ""))


class Program(Group):
    """All commands."""

    def __init__(self, name: str = "", **attributes: Any) -> None:
        super().__init__("", **attributes)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raises Failure, with the remedy, for a command that there was."""
        words = " ".join(args[:2])
        if words in GONE:
            raise Failure(f"{words}: is no command any more; use {GONE[words]}")
        return super().parse_args(ctx, args)


def no_help() -> dict[str, Any]:
    """The default of --help for every command, nested as they are."""
    made: dict[str, Any] = {"help": False}
    for name in COMMANDS:
        inner = made
        for word in name.split():
            inner = inner.setdefault(word, {"help": False})
    return made


app = typer.Typer(
    name="rampgate",
    cls=Program,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # the help is printed without rich, whose import takes longer than all of the rest
    pretty_exceptions_enable=False,
    # Without a default, typer reads an absent --help with pydantic, whose import takes longer than all the rest.
    context_settings={"default_map": no_help()},
)


def show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(version("rampgate"))
        raise typer.Exit


@app.callback()
def rampgate(version: Annotated[bool, typer.Option("--version", is_eager=True, callback=show_version)] = False) -> None:
    """Every command takes --help; those that answer take --json."""
